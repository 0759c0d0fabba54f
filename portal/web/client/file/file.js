// One file: shown by kind, without running anything of it. The bytes come from below /data/.
import { onShow } from "../files/shown.js";
import { element, icon, messageOf } from "../common/dom.js";
import { size } from "../common/words.js";
import * as editing from "./edit.js";
import * as server from "../files/ask.js";

const MOST_TEXT = 1024 * 1024;
export const MOST_EDIT = 2 * 1024 * 1024;
export const assets = document.getElementById("files-token").dataset;
let turn = 0; // of the file that is shown: what comes late for an earlier one is dropped
let close = () => {};

export const page = () => document.getElementById("file");
export const view = () => document.getElementById("view");
export const address = () => `/data/files/${page().dataset.location}`;

// A part of the program that is loaded only when it is needed.
/**
 * @template T
 * @param {Promise<T>} part
 */
export async function load(part) {
  try {
    return await part;
  } catch {
    throw new Error("A part of this page could not be loaded. Check your connection and try again.");
  }
}

/** @param {string} text */
export function note(text) {
  const line = page().querySelector("[data-file-note]");
  line.textContent = text;
  line.hidden = !text;
}

/** @param {Node[]} what */
export function put(...what) {
  view().replaceChildren(...what);
  view().dataset.state = "shown";
}

/** @param {string} text */
function facts(text) {
  const box = element("div", "empty");
  box.append(element("p", "empty-title", text), element("p", "", "Download it to open it with a program of yours."));
  put(box);
}

/**
 * The beginning of a file. `whole`: its size in bytes; `plain`: whether it is UTF-8; `crlf`: whether its
 * lines end so; `mark`: whether it begins with a byte order mark.
 * @typedef {{ text: string, complete: boolean, whole: number, etag: string, plain: boolean, binary: boolean,
 *   crlf: boolean, mark: boolean }} Content
 */

/** @param {number} most bytes @returns {Promise<Content>} */
export async function read(most) {
  const length = Number(page().dataset.size);
  // A link's size is its target's length: the answer tells.
  const answer = await server.bytes(address(), { headers: { Range: `bytes=0-${most - 1}` } });
  const bytes = answer.status === 416 ? new Uint8Array() : new Uint8Array(await answer.arrayBuffer());
  const whole = Number(answer.headers.get("Content-Range")?.split("/")[1] ?? (answer.status === 416 ? 0 : bytes.length));
  const complete = bytes.length >= whole;
  const found = { text: "", crlf: false, mark: false, complete, whole: whole || length, etag: answer.headers.get("ETag") ?? "", binary: bytes.subarray(0, 8192).includes(0), plain: true };
  found.mark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  try {
    // A character may be cut at the end of a part.
    found.text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !complete });
  } catch {
    found.plain = false;
    found.text = new TextDecoder("windows-1252").decode(bytes);
  }
  found.crlf = /\r\n/.test(found.text) && !/[^\r]\n/.test(found.text);
  return found;
}

async function text() {
  const found = await read(MOST_TEXT);
  if (found.binary) return facts("This file is not text");
  return () => {
    const lines = found.text.split("\n");
    if (lines.length > 1 && lines.at(-1) === "") lines.pop();
    const box = element("div", "text-view");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Contents");
    const numbers = element("pre", "numbers", lines.map((_, place) => place + 1).join("\n"));
    numbers.setAttribute("aria-hidden", "true");
    box.append(numbers, element("pre", "", lines.join("\n") || " "));
    put(box);
    const said = [];
    if (!found.complete) said.push(`The first ${size(MOST_TEXT)} of ${size(found.whole)}. Download it to see the rest.`);
    if (!found.plain) said.push("This is no UTF-8 text, so some letters may look wrong.");
    if (!found.whole) said.push("This file is empty.");
    note(said.join(" "));
  };
}

async function image() {
  const picture = element("img", "picture");
  picture.alt = page().dataset.name;
  const show = () => new Promise((resolve, reject) => {
    picture.onload = resolve;
    picture.onerror = reject;
    picture.src = `${address()}?${Date.now()}`;
  });
  await show().catch(async () => {
    await server.bytes(address(), { method: "HEAD" });
    await show().catch(() => { throw new Error("Your browser cannot show this image. Download it to open it with a program of yours."); });
  });
  return () => {
    const box = element("div", "picture-box");
    box.append(picture);
    put(box);
    note(picture.naturalWidth ? `${picture.naturalWidth} × ${picture.naturalHeight} pixels` : "");
  };
}

/** @type {Record<string, () => Promise<(() => unknown) | void>>} */
export const viewers = { text, image };
/** @type {[RegExp, string[]][]} */
const KINDS = [
  [/\.(png|jpe?g|gif|webp|avif|bmp|ico)$/i, ["image"]],
  [/\.svg$/i, ["image", "text"]],
  [/\.pdf$/i, ["pdf"]],
  [/\.ipynb$/i, ["notebook", "text"]],
  [/\.(csv|tsv|tab)$/i, ["table", "text"]],
  [/\.(md|markdown)$/i, ["markdown", "text"]],
];
/** @type {Record<string, [string, string]>} */
const WORDS = { image: ["Image", "image"], text: ["Text", "file-text"], notebook: ["Notebook", "journal-code"], table: ["Table", "table"], markdown: ["Formatted", "markdown"] };
export const modesOf = (/** @type {string} */ name) => KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? ["text"];

/** @param {string} mode */
export async function show(mode) {
  close();
  close = () => {};
  turn += 1;
  const mine = turn;
  note("");
  view().dataset.state = "loading";
  offer(mode);
  try {
    const draw = await viewers[mode]();
    if (mine === turn && page()) draw?.();
  } catch (error) {
    if (mine !== turn || !page()) return;
    const box = element("div", "empty");
    box.setAttribute("role", "alert");
    box.append(element("p", "empty-title", "This file cannot be shown"), element("p", "", messageOf(error)));
    put(box);
  }
}

/** @param {string} word @param {string} symbol @param {() => unknown} call @param {boolean} [pressed] */
export function button(word, symbol, call, pressed) {
  const made = element("button", "btn btn-quiet");
  made.type = "button";
  made.append(icon(symbol), ` ${word}`);
  if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
  made.addEventListener("click", call);
  return made;
}

/** @param {string} mode */
function offer(mode) {
  const modes = modesOf(page().dataset.name);
  const made = modes.length > 1 ? modes.map((one) => button(...WORDS[one], () => show(one), one === mode)) : [];
  if (modes.includes("text") && Number(page().dataset.size) <= MOST_EDIT) made.push(button("Edit", "pencil-square", () => editing.begin()));
  page().querySelector("[data-file-tools]").replaceChildren(...made);
}

onShow(() => {
  turn += 1;
  close();
  close = () => {};
  if (!page() || !view() || view().querySelector(".empty")) return;
  const query = new URLSearchParams(location.search);
  if (query.has("edit")) editing.begin();
  else show(modesOf(page().dataset.name)[0]);
});

/** @param {HTMLButtonElement[]} buttons */
export function tools(...buttons) {
  page().querySelector("[data-file-tools]").replaceChildren(...buttons);
}

/** @param {() => unknown} call */
export function onClose(call) {
  close = call;
}

export function begin() {
  close();
  close = () => {};
  turn += 1;
  return turn;
}

export const isShown = (/** @type {number} */ mine) => mine === turn && Boolean(page());
