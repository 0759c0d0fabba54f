// Shows one file by its kind, without running its content. The bytes come from below /data/.
import { onShow } from "../files/shown.js";
import { element, icon, messageOf } from "../common/dom.js";
import { size } from "../common/words.js";
import { MOST_EDIT, decode } from "./decoding.js";
import * as editing from "./edit.js";
import * as server from "../files/ask.js";

const MOST_TEXT = 1024 * 1024;
export const assets = document.getElementById("files-token").dataset;
let turn = 0; // number of the file shown; late results for earlier files are dropped
let close = () => {};

export const page = () => document.getElementById("file");
export const view = () => document.getElementById("view");
export const address = () => `/data/files/${page().dataset.location}`;

// Awaits a part of the program that is imported on demand.
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

/** @param {Node[]} nodes */
export function put(...nodes) {
  view().replaceChildren(...nodes);
  view().dataset.state = "shown";
}

/** @param {string} text */
function facts(text) {
  const box = element("div", "empty");
  box.append(element("p", "empty-title", text), element("p", "", "Download it to open it with a program of yours."));
  put(box);
}

/**
 * The beginning of a file. `total`: the file's size in bytes.
 * @typedef {import("./decoding.js").Decoded & { complete: boolean, total: number, etag: string }} Content
 */

/** @param {number} most bytes @returns {Promise<Content>} */
export async function read(most) {
  const length = Number(page().dataset.size);
  // A link's size is the length of its target's path, so the response's size counts.
  const answer = await server.bytes(address(), { headers: { Range: `bytes=0-${most - 1}` } });
  const bytes = answer.status === 416 ? new Uint8Array() : new Uint8Array(await answer.arrayBuffer());
  const total = Number(answer.headers.get("Content-Range")?.split("/")[1] ?? (answer.status === 416 ? 0 : bytes.length));
  const complete = bytes.length >= total;
  const shown = page().dataset.kind === "file" ? page().dataset.etag : ""; // 416 for an empty file has no ETag
  return { ...decode(bytes, complete), complete, total: total || length, etag: answer.headers.get("ETag") ?? shown ?? "" };
}

async function text() {
  const content = await read(MOST_TEXT);
  if (content.binary) return facts("This file is not text");
  return () => {
    const lines = content.text.split(/\r\n?|\n/); // as the editor does
    if (lines.length > 1 && lines.at(-1) === "") lines.pop();
    const box = element("div", "text-view");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Contents");
    const numbers = element("pre", "numbers", lines.map((_, index) => index + 1).join("\n"));
    numbers.setAttribute("aria-hidden", "true");
    box.append(numbers, element("pre", "", lines.join("\n") || " "));
    put(box);
    const notes = [];
    if (!content.complete) notes.push(`The first ${size(MOST_TEXT)} of ${size(content.total)}. Download it to see the rest.`);
    if (!content.plain) notes.push("This is not UTF-8 text, so some letters may look wrong.");
    if (!content.total) notes.push("This file is empty.");
    note(notes.join(" "));
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
  const node = element("button", "btn btn-quiet");
  node.type = "button";
  node.append(icon(symbol), ` ${word}`);
  if (pressed !== undefined) node.setAttribute("aria-pressed", String(pressed));
  node.addEventListener("click", call);
  return node;
}

/** @param {string} mode */
function offer(mode) {
  const modes = modesOf(page().dataset.name);
  const buttons = modes.length > 1 ? modes.map((item) => button(...WORDS[item], () => show(item), item === mode)) : [];
  const { size: length, saving } = page().dataset;
  if (modes.includes("text") && Number(length) <= MOST_EDIT && saving !== "refused") buttons.push(button("Edit", "pencil-square", () => editing.begin()));
  page().querySelector("[data-file-tools]").replaceChildren(...buttons);
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
