// Destinations of copies and moves: a dialog with the folders of all areas, and drag and drop.
import { element, focused, icon, messageOf } from "../common/dom.js";
import * as wording from "../common/words.js";
import * as server from "./ask.js";
import * as dialogs from "./dialogs.js";
import * as listing from "./folder.js";
import * as selection from "./selection.js";

const box = document.getElementById("ask-to");
const list = box.querySelector("[data-to-list]");
const crumbs = box.querySelector("[data-to-crumbs]");
let at = "";
/** @type {Item[]} */
let moved = [];

const areas = () => [...document.querySelectorAll("#files-areas option")].map((option) => [option.value, option.textContent]);
const titleOf = (/** @type {string} */ path) => (path.includes("/") ? wording.nameOf(path) : areas().find(([root]) => root === path)?.[1] ?? path);

/** @param {string} path @param {string} text @param {string} symbol */
function link(path, text, symbol) {
  const button = element("button", "choice");
  button.type = "button";
  button.setAttribute("role", "option");
  button.setAttribute("aria-selected", "false");
  const name = element("bdi", "", text);
  button.append(icon(symbol), name);
  button.addEventListener("click", () => show(path));
  return button;
}

/** @param {string} path */
async function show(path) {
  at = path;
  const parts = path ? path.split("/") : [];
  const area = parts[0] === "shared" ? 3 : 1; // another user's folder counts as an area
  const way = parts.map((_, index) => parts.slice(0, index + 1).join("/")).slice(area - 1);
  crumbs.replaceChildren(...["", ...way].map((each) => {
    const item = element("li");
    const button = element("button", "crumb", each ? titleOf(each) : "Files");
    button.type = "button";
    button.addEventListener("click", () => show(each));
    if (each === path) button.setAttribute("aria-current", "true");
    item.append(button);
    return item;
  }));
  box.querySelector("[data-go]").disabled = !path;
  box.querySelector("[data-to-new]").disabled = !path;
  dialogs.trouble(box, "");
  if (!path) {
    list.replaceChildren(...areas().map(([root, title]) => link(root, title, "hdd-fill")));
  } else {
    try {
      const result = await server.get("list", path, { limit: 1000 });
      if (at !== path) return;
      const movedPaths = new Set(moved.map((item) => item.path));
      const folders = result.entries.filter((/** @type {Entry} */ entry) => entry.is_folder && !movedPaths.has(entry.path));
      list.replaceChildren(...folders.map((/** @type {Entry} */ entry) => link(entry.path, wording.visible(entry.name), "folder-fill")));
      if (!folders.length) list.replaceChildren(element("p", "sub", "No folders in here."));
      box.querySelector("[data-go]").disabled = !result.writable;
      if (!result.writable) dialogs.trouble(box, "You may not put anything into this folder.");
    } catch (error) {
      list.replaceChildren();
      dialogs.trouble(box, messageOf(error));
    }
  }
  (list.querySelector("button") ?? crumbs.querySelector("[aria-current]"))?.focus();
}

list.addEventListener("keydown", (event) => {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (event.key === "Backspace" && at) crumbs.querySelector("li:nth-last-child(2) button").click();
  else if (step) {
    const all = [...list.querySelectorAll("button")];
    all[Math.max(0, Math.min(all.length - 1, all.indexOf(/** @type {PageElement} */ (focused())) + step))]?.focus();
  } else return;
  event.preventDefault();
});
box.querySelector("[data-to-new]").addEventListener("click", async () => {
  const parent = at;
  const path = await dialogs.makeFolder(parent);
  if (path) show(path);
});

// Resolves to a location, or null.
/** @param {string} verb @param {Item[]} items */
export function choose(verb, items) {
  moved = items;
  box.querySelector("h2").textContent = `${verb} ${items.length === 1 ? `“${items[0].name}”` : wording.counted(items.length, "item")} to…`;
  box.querySelector("[data-go]").textContent = `${verb} here`;
  const chosen = dialogs.ask("ask-to", () => at);
  show(listing.currentFolder());
  return chosen;
}

// Dragging entries to a folder of the list or of the breadcrumbs.
const KIND = "application/x-slipway-files";
const target = (/** @type {PageEvent<DragEvent>} */ event) => event.target.closest?.("[data-drop]");
document.addEventListener("dragstart", (event) => {
  const row = event.target.closest?.("#folder tr[data-path]");
  if (!row) return;
  const picked = selection.list();
  const items = picked.some((item) => item.path === row.dataset.path) ? picked : [selection.fact(row)];
  event.dataTransfer.setData(KIND, JSON.stringify(items.map((item) => item.path)));
  event.dataTransfer.effectAllowed = "copyMove";
});
document.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes(KIND) || !target(event)) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = event.ctrlKey ? "copy" : "move";
  for (const row of document.querySelectorAll(".is-target")) row.classList.remove("is-target");
  target(event).classList.add("is-target");
});
for (const kind of ["dragleave", "dragend", "drop"]) {
  document.addEventListener(kind, () => { for (const row of document.querySelectorAll(".is-target")) row.classList.remove("is-target"); });
}
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.types.includes(KIND) || !target(event)) return;
  event.preventDefault();
  const to = target(event).dataset.drop;
  const items = JSON.parse(event.dataTransfer.getData(KIND)).filter((/** @type {string} */ path) => path !== to && wording.parentOf(path) !== to);
  if (items.length) dialogs.operate({ kind: event.ctrlKey ? "copy" : "move", items, to }).catch(dialogs.failed);
});
