// Uploads on the Files page: adds chosen or dropped files to the queue (uploads/queue.js), and shows its items in
// the panel.
import { messageOf } from "../common/dom.js";
import * as wording from "../common/words.js";
import { counted, nameOf, parentOf, size, span, visible } from "../common/words.js";
import * as server from "./ask.js";
import * as dialogs from "./dialogs.js";
import * as earlier from "./earlier.js";
import * as listing from "./folder.js";
import * as panel from "./panel.js";
import * as queue from "../uploads/queue.js";
import * as sources from "../uploads/sources.js";

const LINES = 30; // single lines of the panel; further files are only counted
const total = document.querySelector("[data-upload-total]");
const lines = new Set();
const settled = new Set(["done", "failed", "cancelled"]);
/** @type {import("../uploads/queue.js").Conflict[]} */
const conflicts = []; // wait for an answer, one dialog at a time
let asking = false;
let added = false;

queue.ensureWith(async () => {
  const answer = await server.admit();
  if (!answer.ok) throw new Error("not admitted");
});

/** @param {(File | Chosen)[]} files @param {string} folder */
function add(files, folder) {
  if (!files.length) return;
  added = true;
  queue.add(files, folder);
  wording.say(`Uploading ${counted(files.length, "file")}.`);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-upload]");
  if (!button) return;
  const folder = listing.currentFolder();
  try {
    add(await sources.pick({ folder: button.dataset.upload === "folder" }), folder);
  } catch (error) {
    panel.note(`These files could not be read: ${messageOf(error)}`, true);
  }
});

// Dropping, anywhere on the list.
const zone = (/** @type {PageEvent<DragEvent>} */ event) => (event.dataTransfer?.types.includes("Files") ? document.querySelector("#drop") : null);
/** @param {boolean} isOver */
function over(isOver) {
  document.getElementById("drop")?.classList.toggle("is-over", isOver);
}
document.addEventListener("dragover", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault(); // else the browser would leave the page and open the file
  const may = zone(event) && "writable" in listing.folder().dataset;
  event.dataTransfer.dropEffect = may ? "copy" : "none";
  over(Boolean(may));
});
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
document.addEventListener("drop", async (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  over(false);
  if (!listing.folder() || !("writable" in listing.folder().dataset)) return;
  const into = event.target.closest?.("tr[data-folder]")?.dataset.path ?? listing.currentFolder();
  try {
    add(await sources.dropped(event.dataTransfer), into);
  } catch (error) {
    panel.note(`What was dropped could not be read: ${messageOf(error)}`, true);
  }
});

// Lines of the panel
/** @type {Record<UploadState, (item: UploadItem) => string>} */
const WORDS = {
  waiting: () => "Waits",
  running: (item) => [`${size(item.sent)} of ${size(item.size)}`, item.rate ? `${size(item.rate)}/s` : "", item.remaining ? `${span(item.remaining)} left` : ""].filter(Boolean).join(" · "),
  retrying: (item) => `${size(item.sent)} of ${size(item.size)} · the connection is lost, trying again`,
  paused: (item) => `${size(item.sent)} of ${size(item.size)} · paused`,
  asking: () => "This name exists",
  done: (item) => `${size(item.size)} · uploaded`,
  failed: (item) => item.problem,
  cancelled: () => "Cancelled",
};
/** @type {Record<UploadState, string>} */
const STATES = { waiting: "running", running: "running", retrying: "paused", paused: "paused", asking: "asking", done: "good", failed: "bad", cancelled: "bad" };
/** @type {Partial<Record<UploadState, string>>} */
const ICONS = { done: "check-circle-fill", failed: "exclamation-triangle-fill", asking: "question-circle-fill" };

/** @param {UploadItem} item @returns {Action[]} */
function actions(item) {
  /** @type {Action} */
  const cancel = ["Cancel", "x-lg", () => queue.cancel(item.id)];
  if (["waiting", "running", "retrying"].includes(item.state)) return [["Pause", "pause-fill", () => queue.pause(item.id)], cancel];
  if (item.state === "paused") return [["Go on", "play-fill", () => queue.resume(item.id)], cancel];
  if (item.state === "failed") return [["Try again", "arrow-clockwise", () => queue.resume(item.id)], ["Hide", "x-lg", () => drop(item)]];
  return item.state === "asking" ? [cancel] : [["Hide", "x-lg", () => drop(item)]];
}

/** @param {UploadItem} item */
function drop(item) {
  lines.delete(item.id);
  panel.remove(`upload-${item.id}`);
  if (item.state === "failed") queue.cancel(item.id);
}

/** @param {UploadItem} item */
function line(item) {
  if (item.state === "cancelled") {
    drop(item);
    return;
  }
  if (!lines.has(item.id) && lines.size >= LINES && !["failed", "asking"].includes(item.state)) return;
  lines.add(item.id);
  panel.put(`upload-${item.id}`, {
    title: visible(item.name), state: STATES[item.state], share: item.size ? item.sent / item.size : 0,
    icon: ICONS[item.state] ?? "upload", detail: WORDS[item.state](item), actions: actions(item),
  });
  if (item.state === "done") setTimeout(() => { if (item.state === "done") drop(item); }, 4000);
}

function sum() {
  const live = queue.items.filter((item) => !settled.has(item.state));
  total.hidden = live.length === 0;
  if (!live.length) return;
  const rate = live.reduce((all, item) => all + item.rate, 0);
  const left = live.reduce((all, item) => all + item.size - item.sent, 0);
  total.textContent = `${counted(live.length, "upload")} left, ${size(left)}${rate ? ` · ${size(rate)}/s · ${span(left / rate)}` : ""}`;
}

const drawn = new Map(); // id → [state, time]: progress is drawn a few times a second
let refreshing = 0;
queue.onChange((item) => {
  const [state, time] = drawn.get(item.id) ?? ["", 0];
  if (state === item.state && Date.now() - time < 250) return;
  drawn.set(item.id, [item.state, Date.now()]);
  line(item);
  sum();
  if (item.state === "failed" && state !== "failed") wording.say(`${item.name}: ${item.problem}`);
  if (item.state === "done" && listing.folder() && item.target.startsWith(`${listing.currentFolder()}/`)) {
    clearTimeout(refreshing);
    refreshing = setTimeout(() => listing.refresh(), 500);
  }
  if (added && queue.items.every((other) => settled.has(other.state))) {
    added = false;
    const failed = queue.items.filter((other) => other.state === "failed").length;
    wording.say(failed ? `${counted(failed, "upload")} failed.` : "All uploads are complete.");
  }
});

queue.onConflict((conflict) => {
  conflicts.push(conflict);
  answer();
});
async function answer() {
  if (asking || document.querySelector("dialog[open]")) {
    if (!asking) setTimeout(answer, 500);
    return;
  }
  const next = conflicts.shift();
  if (!next) return;
  if (next.item.state !== "asking") {
    answer();
    return;
  }
  asking = true;
  const chosen = await dialogs.exists(`“${visible(next.item.name)}” exists already`,
    `In “${nameOf(parentOf(next.item.target))}”. Replace it with the one that you upload, keep both, or skip this upload?`, queue.items.length > 1);
  asking = false;
  if (chosen) next.answer(chosen.value, chosen.all);
  else queue.cancel(next.item.id);
  answer();
}

panel.onClose(() => {
  for (const item of queue.items) if (settled.has(item.state)) drop(item);
});
addEventListener("DOMContentLoaded", () => earlier.show(() => { added = true; }));
