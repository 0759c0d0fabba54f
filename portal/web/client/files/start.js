// The start page of Files: counts sizes while it is shown; creates, renames and deletes storage folders.
import { onShow } from "./shown.js";
import * as wording from "../common/words.js";
import { number, size } from "../common/words.js";
import * as server from "./ask.js";
import * as dialogs from "./dialogs.js";
import * as listing from "./folder.js";

const start = () => document.getElementById("start");
let turn = 0; // number of the page shown; counts for earlier pages stop

/** @param {PageElement} row @param {number} mine */
async function count(row, mine) {
  for (;;) {
    let usage;
    try {
      usage = await server.get("usage", row.dataset.usage);
    } catch {
      usage = null;
    }
    if (mine !== turn) return;
    const [bytes, files] = [row.querySelector("[data-bytes-used]"), row.querySelector("[data-files-used]")];
    for (const cell of [bytes, files]) cell.classList.toggle("sub", !usage?.complete);
    bytes.textContent = usage ? size(usage.bytes) + (usage.complete ? "" : " …") : "–";
    files.textContent = usage ? number.format(usage.files) + (usage.complete ? "" : " …") : "–";
    if (!usage || usage.complete) return;
    await new Promise((then) => setTimeout(then, 1200));
  }
}

/** @param {PageElement} area */
async function quota(area) {
  const usage = await server.get("quota", area.dataset.quota).catch(() => null);
  if (!usage || usage.source === "none" || !usage.limit) return;
  const line = area.querySelector(".quota");
  const share = Math.min(1, usage.used / usage.limit);
  line.querySelector(".fill").setAttribute("width", (share * 100).toFixed(1));
  line.querySelector(".bar").classList.toggle("full", share > 0.9);
  line.querySelector("span").textContent = `${size(usage.used)} of ${size(usage.limit)}${usage.source === "df" ? " of the file system in use" : " of your quota"}, ${size(Math.max(0, usage.limit - usage.used))} free${usage.files_limit && usage.source !== "df" ? ` · ${number.format(usage.files)} of ${number.format(usage.files_limit)} files` : ""}`;
  line.hidden = false;
}

async function show() {
  turn += 1;
  if (!start()) return;
  const mine = turn;
  for (const area of start().querySelectorAll("[data-quota]")) quota(area);
  // Two at a time, since each count walks a file system.
  const rows = [...start().querySelectorAll("[data-usage]")];
  const work = async () => {
    while (rows.length && mine === turn) await count(/** @type {PageElement} */ (rows.shift()), mine);
  };
  await Promise.all([work(), work()]);
}

const again = () => listing.go("/files");
const NOTE = "Sessions have it at ~/ under this name.";

async function make() {
  const entry = await dialogs.askName({ title: "New storage folder", go: "Create", note: NOTE },
    (text) => server.change("folder", `storage/${wording.encode(text)}`));
  if (entry) again();
}

const itemOf = (/** @type {PageElement} */ row) => ({ path: row.dataset.path, name: row.dataset.name, folder: true, size: 0 });

/** @param {PageElement} row */
async function rename(row) {
  if (await dialogs.rename(itemOf(row), { note: NOTE })) again();
}

/** @param {PageElement} row */
async function remove(row) {
  if (await dialogs.remove([itemOf(row)])) setTimeout(again, 300);
}

document.addEventListener("click", (event) => {
  const row = event.target.closest?.("tr[data-usage]");
  const on = (/** @type {string} */ name) => event.target.closest?.(`[data-storage-${name}]`);
  const task = on("new") ? make() : on("rename") ? rename(row) : on("delete") ? remove(row) : null;
  task?.catch(dialogs.failed);
});
onShow(show);
