// The Files pages: exchanges folders and files without leaving the page, and handles the keyboard.
import htmx from "htmx.org";
import { focused, textFields } from "../common/dom.js";
import { shown } from "./shown.js";
import * as times from "../common/times.js";
import * as wording from "../common/words.js";
import * as dialogs from "./dialogs.js";
import * as panel from "./panel.js";
import * as selection from "./selection.js";

let focusAfter = ""; // location of the row to focus after the next swap
let wasInside = false;

export const folder = () => document.getElementById("folder");
export const currentFolder = () => folder()?.dataset.location ?? "";
export const rows = () => [...document.querySelectorAll("#folder tr[data-path]")];
export const rowOf = (/** @type {string} */ path) => rows().find((row) => row.dataset.path === path);

/** @param {string} address */
export function go(address) {
  return htmx.ajax("get", address, { target: "#files", select: "#files", swap: "outerHTML show:none", source: "#files" })
    .then(() => { if (location.pathname + location.search !== address) history.pushState({ htmx: true }, "", address); });
}

// A swap between press and release of a button would swallow the click.
let pressed = false;
/** @type {string | null} */
let late = null; // location to focus by a refresh that waits for the release
document.addEventListener("pointerdown", () => { pressed = true; }, true);
for (const kind of ["pointerup", "pointercancel"]) {
  document.addEventListener(kind, () => {
    pressed = false;
    if (late === null) return;
    setTimeout(refresh, 0, late);
    late = null;
  }, true);
}

// Reloads the folder after a change; keeps the selection and the keyboard focus.
let refreshes = 0;
export async function refresh(path = "") {
  refreshes += 1;
  const active = focused()?.closest?.("tr[data-path]")?.dataset.path;
  focusAfter = path || active || "";
  wasInside = Boolean(path || active);
  const scroll = scrollY;
  await htmx.ajax("get", location.pathname + location.search,
    { target: "#files", select: "#files", swap: "outerHTML show:none", source: "#files" }).finally(() => { refreshes -= 1; });
  scrollTo({ top: scroll, behavior: "instant" });
}

/** @param {PageElement} row */
export function focusRow(row, { scroll = true } = {}) {
  if (!row) return;
  for (const other of rows()) other.tabIndex = other === row ? 0 : -1;
  row.focus({ preventScroll: !scroll });
  if (scroll) row.scrollIntoView({ block: "nearest" });
}

const open = (/** @type {PageElement} */ row) => row.querySelector("a.name").click();

let last = "";
function show() {
  times.refresh();
  const now = currentFolder() || document.getElementById("file")?.dataset.location || "start";
  const moved = Boolean(last) && last !== now;
  shown(moved);
  if (moved && !focused()?.closest?.("#files, dialog")) {
    // The row of the previous folder or file, else the first row.
    focusRow(rowOf(focusAfter) ?? rowOf(last) ?? rows()[0], { scroll: Boolean(rowOf(last)) });
    wording.say(`${document.title.split(" · ")[0]}${folder() ? `, ${wording.counted(Number(folder().dataset.total), "entry", "entries")}` : ""}`);
  } else if (focusAfter && wasInside) {
    focusRow(rowOf(focusAfter) ?? rows()[0], { scroll: Boolean(rowOf(focusAfter)) });
  }
  focusAfter = "";
  last = now;
}

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target?.id === "files" || event.detail.elt?.id === "files") show();
});
document.addEventListener("htmx:historyRestore", show);
// Error responses are pages with advice, so they are shown.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "files" && refreshes && pressed) {
    event.detail.shouldSwap = false;
    late ??= focusAfter;
    return;
  }
  if (event.detail.target.id !== "files" || event.detail.xhr.status < 400 || event.detail.xhr.status === 401) return;
  if (!event.detail.xhr.responseText.includes('id="files"')) return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});
for (const kind of ["sendError", "timeout"]) {
  document.addEventListener(`htmx:${kind}`, () => panel.note("The portal does not answer. Check your connection and try again.", true));
}
document.addEventListener("htmx:beforeRequest", () => document.body.classList.add("is-loading"));
document.addEventListener("htmx:afterRequest", () => document.body.classList.remove("is-loading"));

// Typing searches, after a pause.
let timer = 0;
document.addEventListener("input", (event) => {
  if (event.target.id !== "q") return;
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const form = document.querySelector(".files-filters");
    if (!form) return;
    const query = new URLSearchParams(textFields(form).filter(([, value]) => value));
    const at = event.target.selectionStart;
    await go(`${form.getAttribute("action")}${query.size ? `?${query}` : ""}`);
    const field = document.getElementById("q");
    field?.focus({ preventScroll: true });
    field?.setSelectionRange(at, at);
    wording.say(document.querySelector(".found > span")?.textContent ?? "");
  }, 350);
});

const typing = (/** @type {PageElement} */ target) => target.closest?.("input:not([type=checkbox]), textarea, select, dialog, .editor, [contenteditable]");
/** @type {Record<string, number>} */
const MOVES = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };

/** @param {PageEvent<KeyboardEvent>} event */
function move(event) {
  const all = rows();
  const at = all.indexOf(/** @type {PageElement} */ (focused()?.closest("tr[data-path]")));
  const step = MOVES[event.key];
  const next = at < 0 ? (step < 0 ? all.length - 1 : 0) : Math.max(0, Math.min(all.length - 1, at + step));
  event.preventDefault();
  focusRow(all[next]);
  if (event.shiftKey) selection.extend(all[next]);
}

/** @param {PageEvent<KeyboardEvent>} event @param {PageElement} row */
function onRow(event, row) {
  if (event.key === "Enter" && !event.target.closest("a, button")) open(row);
  else if (event.key === " " && !event.target.closest("button, input")) selection.toggle(row);
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || typing(event.target) || document.querySelector("dialog[open]")) return;
  const row = event.target.closest?.("tr[data-path]");
  const command = event.ctrlKey || event.metaKey;
  const up = (event.key === "Backspace" && !command && !event.altKey) || (event.altKey && event.key === "ArrowUp");
  const parent = (folder() ?? document.getElementById("file"))?.dataset.parent;
  if (up && parent) {
    event.preventDefault();
    go(parent);
  } else if (!folder()) return;
  else if (command && event.key.toLowerCase() === "a") {
    event.preventDefault();
    selection.all(true);
  } else if (command || event.altKey) return;
  else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("q")?.focus();
  } else if (event.key === "Escape") selection.all(false);
  else if (event.key === "Delete") dialogs.act("delete");
  else if (event.key === "F2") {
    event.preventDefault();
    dialogs.act("rename");
  } else if (event.key in MOVES && (row || event.target === document.body || event.target.id === "main")) move(event);
  else if (row) onRow(event, row);
});

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-keys]")) document.getElementById("keys").showModal();
});
addEventListener("DOMContentLoaded", show);
