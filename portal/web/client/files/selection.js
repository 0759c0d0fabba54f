// The selection of files: by checkboxes, by clicks with Shift or Ctrl, or by the keyboard.
import { focused } from "../common/dom.js";
import { onShow } from "./shown.js";
import * as wording from "../common/words.js";
import * as listing from "./folder.js";

const picked = new Map(); // location → Item
let anchor = ""; // where a range begins
let folder = ""; // the folder that the selection belongs to
const bar = () => document.getElementById("picked");

export const fact = (/** @type {PageElement} */ row) => ({
  path: row.dataset.path, name: row.dataset.name, kind: row.dataset.kind, mode: row.dataset.mode,
  folder: "folder" in row.dataset, size: Number(row.dataset.size),
});

const ARCHIVE = /.\.(zip|tar|tar\.(gz|bz2|xz|zst)|tgz|tbz2?|txz|tzst)$/i; // as operations/archive_formats.py
const isArchive = (/** @type {Item} */ item) => item.kind === "file" && ARCHIVE.test(item.name);
export const mayChange = () => "writable" in listing.folder().dataset || "below" in listing.folder().dataset;

function draw() {
  for (const row of listing.rows()) {
    const is = picked.has(row.dataset.path);
    row.classList.toggle("is-picked", is);
    row.setAttribute("aria-selected", String(is));
    row.querySelector("[name=pick]").checked = is;
  }
  const all = document.getElementById("pick-all");
  if (all) {
    const there = listing.rows().length;
    all.checked = there > 0 && picked.size === there;
    all.indeterminate = picked.size > 0 && !all.checked;
  }
  if (!bar()) return;
  bar().hidden = picked.size === 0;
  const size = [...picked.values()].reduce((sum, item) => sum + item.size, 0);
  document.getElementById("picked-count").textContent = `${wording.number.format(picked.size)} selected${size ? ` · ${wording.size(size)}` : ""}`;
  for (const name of ["rename", "move", "delete"]) bar().querySelector(`[data-do="${name}"]`).hidden = !mayChange();
  bar().querySelector('[data-do="unpack"]').hidden = ![...picked.values()].every(isArchive);
  if (picked.size !== 1) bar().querySelector('[data-do="rename"]').hidden = true;
}

function say() {
  wording.say(picked.size ? `${wording.number.format(picked.size)} selected` : "Nothing selected");
}

/** @param {PageElement} row @param {boolean} selected */
function set(row, selected) {
  if (selected) picked.set(row.dataset.path, fact(row));
  else picked.delete(row.dataset.path);
}

/** @param {PageElement} row */
export function toggle(row) {
  set(row, !picked.has(row.dataset.path));
  anchor = row.dataset.path;
  draw();
  say();
}

// Selects only the rows from the anchor to this row.
/** @param {PageElement} row */
export function extend(row) {
  const all = listing.rows();
  const first = Math.max(0, all.findIndex((item) => item.dataset.path === anchor));
  const last = all.indexOf(row);
  picked.clear();
  for (const item of all.slice(Math.min(first, last), Math.max(first, last) + 1)) set(item, true);
  anchor ||= all[first].dataset.path;
  draw();
  say();
}

/** @param {boolean} selected */
export function all(selected) {
  for (const row of listing.rows()) set(row, selected);
  if (!selected) picked.clear();
  draw();
  say();
}

document.addEventListener("change", (event) => {
  if (event.target.id === "pick-all") all(event.target.checked);
});
document.addEventListener("focusin", (event) => {
  const row = event.target.closest?.("#folder tr[data-path]");
  if (row && !anchor) anchor = row.dataset.path;
});
document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-pick-none]")) {
    all(false);
    listing.focusRow(listing.rows()[0]);
    return;
  }
  const row = event.target.closest?.("#folder tr[data-path]");
  if (!row || event.target.closest(".btn")) return;
  const command = event.ctrlKey || event.metaKey;
  if (event.target.closest("a") && !command && !event.shiftKey) return;
  if (event.shiftKey) {
    event.preventDefault();
    getSelection()?.removeAllRanges();
    extend(row);
  } else if (command || event.target.closest("input, .c-pick")) toggle(row);
  else if (String(getSelection())) return; // a name is being marked to copy it
  else {
    const only = picked.size === 1 && picked.has(row.dataset.path);
    picked.clear();
    if (!only) set(row, true);
    anchor = row.dataset.path;
    draw();
    say();
  }
  if (event.target.closest("a")) { // htmx would open it
    event.preventDefault();
    event.stopPropagation();
  }
  setTimeout(draw); // a box whose click is prevented gets its earlier state back
  listing.focusRow(row, { scroll: false });
}, true);
document.addEventListener("dblclick", (event) => {
  const row = event.target.closest?.("#folder tr[data-path]");
  if (row && !event.target.closest("a, input, .btn")) row.querySelector("a.name").click();
});

onShow(() => {
  const there = new Set(listing.rows().map((row) => row.dataset.path));
  if (folder !== listing.currentFolder()) [folder, anchor] = [listing.currentFolder(), ""];
  for (const path of picked.keys()) if (!there.has(path)) picked.delete(path);
  for (const row of listing.rows()) if (picked.has(row.dataset.path)) set(row, true);
  draw();
});

// The selected items, else the item with the keyboard focus.
export function list() {
  if (picked.size) return [...picked.values()];
  const row = focused()?.closest?.("#folder tr[data-path]");
  return row ? [fact(row)] : [];
}

/** @param {string[]} paths */
export function deselect(paths) {
  for (const path of paths) picked.delete(path);
  draw();
}
