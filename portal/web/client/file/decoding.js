// The bytes of a text file as text, and back without a change.
export const MOST_EDIT = 2 * 1024 * 1024;
const BEGINNING = 8192; // bytes in which a NUL tells binary files from text
const MARK = "\ufeff";

/**
 * `mark`: the byte order mark before the text, or ""; `plain`: whether it is UTF-8, so that mark and text are the bytes;
 * `binary`: whether it is not text.
 * @typedef {{ text: string, mark: string, plain: boolean, binary: boolean }} Decoded
 */

/** @param {Uint8Array} bytes @param {boolean} complete whether these are all bytes of the file @returns {Decoded} */
export function decode(bytes, complete) {
  const binary = bytes.subarray(0, BEGINNING).includes(0);
  try {
    // A character may be cut at the end of a part.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !complete });
    const mark = text.startsWith(MARK) ? MARK : "";
    return { text: text.slice(mark.length), mark, plain: true, binary };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(bytes), mark: "", plain: false, binary };
  }
}

/**
 * Why a file cannot be edited here; "" if it can.
 * @param {Decoded & { complete: boolean, total: number }} content `total`: the file's size in bytes
 */
export function problemOf({ binary, complete, plain, total }) {
  if (binary) return "This file is not text.";
  if (!complete || total > MOST_EDIT) return "Files of up to 2 MB can be edited here. Open it in a session, or with a program of yours.";
  return plain ? "" : "This is not UTF-8 text. Saving it from here would change its letters.";
}
