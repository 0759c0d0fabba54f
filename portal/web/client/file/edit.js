// Edits a text file. Saves it only if it has not changed meanwhile; unsaved changes are stored in this browser,
// so that a lost connection, a reload or an expired login loses nothing.
import { element, messageOf } from "../common/dom.js";
import * as wording from "../common/words.js";
import { MOST_EDIT, problemOf } from "./decoding.js";
import * as viewer from "./file.js";
import { button, load, note, page, put, read } from "./file.js";
import * as server from "../files/ask.js";
import * as dialogs from "../files/dialogs.js";
import * as listing from "../files/folder.js";
import * as panel from "../files/panel.js";

const user = document.getElementById("relogin").dataset.user;
const SOON = 300;
/**
 * The edited file, else NONE. `mark`: its byte order mark, before `saved` and `text`, which have the file's line ends.
 * @typedef {{ at: string, name: string, saved: string, text: string, etag: string, mark: string,
 *   handle: ReturnType<typeof import("../libraries/editor.js").edit> | null, timer: number,
 *   edit: typeof import("../libraries/editor.js").edit }} EditedFile
 */

/**
 * Its unsaved changes in this browser. `contents`: with the file's line ends; `text`: of earlier versions, with \n only.
 * @typedef {{ contents?: string, text?: string, etag: string, at: number }} StoredDraft
 */

const NONE = /** @type {any} */ (null);
/** @type {EditedFile} */
let now = NONE;

const key = (/** @type {string} */ at) => `slipway-draft ${user} /files/${at}`;
/** @param {string} at */
function stored(at) {
  try {
    return /** @type {StoredDraft | null} */ (JSON.parse(localStorage.getItem(key(at)) ?? "null"));
  } catch {
    return null;
  }
}
// Stores unsaved changes; returns false if that is impossible.
function keep() {
  clearTimeout(now.timer);
  try {
    if (now.text === now.saved) localStorage.removeItem(key(now.at));
    else localStorage.setItem(key(now.at), JSON.stringify({ contents: now.text, etag: now.etag, at: Date.now() }));
    return true;
  } catch {
    return now.text === now.saved; // the storage is full, or blocked
  }
}
const isChanged = () => Boolean(now) && now.text !== now.saved;

// What saving cannot keep, known before: a line while the file is edited.
const saving = () => page()?.querySelector("[data-file-saving]");

function drawTools() {
  const save = button("Save", "check2", () => send());
  save.className = "btn btn-primary";
  save.disabled = !isChanged();
  save.dataset.save = "";
  save.title = "Ctrl S";
  viewer.tools(save, button("Close", "x-lg", () => leave()));
}

/** @param {string} text */
function changed(text) {
  now.text = text;
  clearTimeout(now.timer);
  now.timer = setTimeout(keep, SOON);
  const save = page()?.querySelector("[data-save]");
  if (save) save.disabled = !isChanged();
  note(isChanged() ? "Not saved yet." : "");
}

/** @param {string} text */
function open(text) {
  now.handle?.destroy();
  now.text = text;
  const host = element("div", "editor file-editor");
  put(host);
  now.handle = now.edit(host, {
    text, name: now.name, label: `Contents of ${now.name}`, description: "Press Escape, then Tab, to leave the editor. Ctrl S saves.", invalid: false, changed,
  });
  now.handle.focus();
  if (saving()) saving().hidden = false;
  drawTools();
}

export async function begin() {
  const mine = viewer.begin();
  viewer.view().dataset.state = "loading";
  const { location: at, name } = page().dataset;
  try {
    if (page().dataset.saving === "refused") throw new Error(saving()?.textContent);
    const [content, { edit }] = await Promise.all([read(MOST_EDIT + 1), load(import("../libraries/editor.js"))]);
    if (!viewer.isShown(mine)) return;
    const problem = problemOf(content);
    if (problem) throw new Error(problem);
    now = { edit, at, name, saved: content.text, text: content.text, etag: content.etag, mark: content.mark, handle: null, timer: 0 };
    viewer.onClose(closed);
    const draft = stored(at);
    const text = draft ? draftText(draft, content.text) : content.text;
    open(text);
    if (draft && text !== content.text) restored(draft);
  } catch (error) {
    if (!viewer.isShown(mine)) return;
    await viewer.show(viewer.modesOf(name)[0]);
    panel.note(messageOf(error), true);
  }
}

/** @param {StoredDraft} draft @param {string} saved */
function draftText({ contents, text = "" }, saved) {
  const crlf = /\r\n/.test(saved) && !/[^\r]\n/.test(saved);
  return contents ?? (crlf ? text.replaceAll("\n", "\r\n") : text);
}

/** @param {StoredDraft} draft */
function restored(draft) {
  const other = draft.etag !== now.etag;
  if (other) now.etag = draft.etag; // so that saving reports the conflict: the file has changed since then
  note(`Your changes of ${new Date(draft.at).toLocaleString()}, which were not saved, are back.${other ? " The file itself has changed since then." : ""} `);
  const line = page().querySelector("[data-file-note]");
  line.append(button("Discard them", "trash3", discard));
}

// Drops the changes and loads the file again.
function discard() {
  now.text = now.saved;
  keep();
  begin();
}

function closed() {
  if (!now) return;
  keep();
  now.handle?.destroy();
  if (saving()) saving().hidden = true;
  if (isChanged()) panel.note(`“${now.name}” has changes that are not saved. They are kept in this browser: open the file again to go on.`);
  now = NONE;
}
function leave() {
  viewer.show(viewer.modesOf(page().dataset.name)[0]);
}

/** @param {Record<string, string>} [headers] @param {string} [at] */
async function send(headers = { "If-Match": now.etag }, at = now.at) {
  const mine = now;
  const text = now.text;
  const save = page().querySelector("[data-save]");
  if (save) save.disabled = true;
  note("Saving…");
  try {
    const answer = await server.bytes(`/data/files/${at}`, { method: "PUT", body: new Blob([now.mark, text]), headers });
    const entry = await answer.json();
    if (now !== mine) return true;
    if (at !== now.at) {
      now.text = now.saved; // nothing is unsaved here
      keep();
      listing.go(`/files/${at}?view&edit`);
      return true;
    }
    now.etag = entry.etag;
    now.saved = text;
    keep();
    note(isChanged() ? "Not saved yet." : `Saved at ${new Date().toLocaleTimeString()}.`);
  } catch (error) {
    if (now !== mine) return false;
    note(`Not saved: ${messageOf(error)} Your changes are kept in this browser.`);
    if (error instanceof server.RequestError && error.code === "changed") conflict();
    else if (at !== now.at) throw error;
  }
  if (save) save.disabled = !isChanged();
  return true;
}

async function conflict() {
  const choice = await dialogs.ask("ask-conflict", (/** @type {string} */ value) => value);
  if (choice === "theirs") discard();
  else if (choice === "overwrite") send({});
  else if (choice === "other") {
    const dot = now.name.lastIndexOf(".");
    const proposed = dot > 0 ? `${now.name.slice(0, dot)} (mine)${now.name.slice(dot)}` : `${now.name} (mine)`;
    await dialogs.askName({ title: "Save under another name", go: "Save", value: proposed }, (/** @type {string} */ text) => send(
      { "If-None-Match": "*" }, `${wording.parentOf(now.at)}/${wording.encode(text)}`));
  }
}

document.addEventListener("keydown", (event) => {
  if (!now || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
  event.preventDefault();
  if (isChanged()) send();
});
addEventListener("pagehide", () => { if (now) keep(); });
addEventListener("beforeunload", (event) => { if (isChanged() && !keep()) event.preventDefault(); });
