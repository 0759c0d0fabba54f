// Parsing and formatting of sizes of memory.

/** Megabytes of a text; 0 for anything else. @param {string} [text] */
export function megabytes(text) {
  const [, number, unit] = /^\s*([0-9.]+)\s*([mgt]?)/i.exec(text ?? "") ?? ["", "", ""];
  const factor = { m: 1, g: 1024, t: 1048576 }[unit.toLowerCase()] ?? 1024;
  return number ? Number(number) * factor : 0;
}

/** @param {number} mb */
export const written = (mb) => (mb % 1024 ? `${mb} MB` : `${mb / 1024} GB`);

/**
 * A size after the + or − button: by 256 MB below 1 GB, by 512 MB below 4 GB, by 1 GB above.
 * @param {number} mb @param {number} direction 1 or -1 @param {number} most 0: no bound
 */
export function stepped(mb, direction, most) {
  const by = mb + direction < 1024 ? 256 : mb + direction < 4096 ? 512 : 1024;
  const value = (direction > 0 ? Math.floor(mb / by) + 1 : Math.ceil(mb / by) - 1) * by;
  return Math.min(Math.max(256, value), Math.floor(most) || Infinity);
}
