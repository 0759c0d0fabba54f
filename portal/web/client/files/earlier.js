// Lines for the unfinished uploads of an earlier visit, which continue after the same files are chosen again.
import { messageOf } from "../common/dom.js";
import { counted, nameOf, parentOf, size, visible } from "../common/words.js";
import * as queue from "../uploads/queue.js";
import * as sources from "../uploads/sources.js";
import { left, linesOf } from "../uploads/unfinished.js";
import * as server from "./ask.js";
import * as dialogs from "./dialogs.js";
import * as panel from "./panel.js";

const ALL = "earlier-all";
/** @type {Unfinished[]} */
let uploads = [];
/** @type {Set<string>} */
let readable = new Set(); // targets whose files this browser can read again
let drawn = new Set();
/** @type {() => void} */
let begun = () => {};

const lineOf = (/** @type {Unfinished} */ upload) => `earlier-${upload.id}`;
const until = (/** @type {Unfinished[]} */ ...some) => `until ${new Date(Math.min(...some.map(({ expires }) => expires)) * 1000).toLocaleString()}`;

/** Only the program that began a part, or an upload of unknown length, can go on with it. @param {Unfinished} upload */
const isContinuable = (upload) => !upload.is_partial && upload.length !== null;

/** @param {Unfinished[]} some @returns {Action[]} */
function resume(some) {
  const own = some.filter(isContinuable);
  if (!own.length) return [];
  if (own.every(({ path }) => readable.has(path))) return [["Choose: go on", "play-fill", goOn]];
  return [[own.length > 1 ? "Choose files" : "Choose file", "folder2-open", choose]];
}

/** @param {Unfinished} upload */
function detailOf(upload) {
  const folder = nameOf(parentOf(upload.path));
  if (upload.is_partial) return `${size(upload.offset)} of a part of an upload by a program.`;
  if (upload.length === null) return `${size(upload.offset)} of an upload to “${folder}” by a program.`;
  const again = readable.has(upload.path) ? "" : " Choose the same file to go on.";
  return `${size(upload.offset)} of ${size(upload.length)} of an earlier upload to “${folder}”.${again}`;
}

function draw() {
  uploads = left(uploads, queue.items);
  const { single, sum } = linesOf(uploads);
  const lines = new Set(sum ? [ALL] : single.map(lineOf));
  for (const id of drawn) if (!lines.has(id)) panel.remove(id);
  drawn = lines;
  for (const upload of single) {
    panel.put(lineOf(upload), {
      title: visible(upload.name), state: "paused", share: upload.length ? upload.offset / upload.length : 0, icon: "upload",
      detail: `${detailOf(upload)} Kept ${until(upload)}.`,
      actions: [...resume([upload]), ["Discard", "trash3", () => discard([upload])]],
    });
  }
  if (!sum) return;
  panel.put(ALL, {
    title: counted(sum.count, "unfinished upload"), state: "paused", share: sum.length ? sum.offset / sum.length : 0, icon: "upload",
    detail: `${size(sum.offset)} of ${size(sum.length)} of earlier uploads. Choose the same files to go on. All are kept ${until(...uploads)}.`,
    actions: [...resume(uploads), ["Discard all", "trash3", discardAll]],
  });
}

async function goOn() {
  begun();
  await sources.goOn();
}

async function choose() {
  const files = await sources.pick();
  begun();
  const unmatched = [];
  for (const each of files) {
    const file = each instanceof File ? each : each.file;
    const match = uploads.find((upload) => !upload.is_partial && upload.length === file.size && visible(upload.name) === visible(file.name)) ?? null;
    if (match) queue.add([each], parentOf(match.path));
    else unmatched.push(file.name);
  }
  if (unmatched.length) panel.note(`Not one of the unfinished uploads: ${unmatched.map(visible).join(", ")}. Its name and size must be the same.`, true);
}

/** @param {Unfinished[]} some */
async function discard(some) {
  for (const upload of some) {
    try {
      await server.change("uploads", upload.id, {}, "DELETE");
    } catch (error) {
      if (!(error instanceof server.RequestError) || error.status !== 404) {
        panel.note(messageOf(error), true);
        break;
      }
    }
    uploads = uploads.filter((other) => other !== upload);
  }
  draw();
}

const discardAll = () => dialogs.confirm({
  title: `Discard ${counted(uploads.length, "unfinished upload")}?`, names: uploads.map((upload) => visible(upload.name)), go: "Discard all",
  text: "What has arrived of them is deleted. This cannot be undone.",
}, () => discard([...uploads]));

// Shows what is left; `call` is called when some of it is about to go on.
/** @param {() => void} call */
export async function show(call) {
  begun = call;
  uploads = (await server.get("uploads").catch(() => ({ uploads: [] }))).uploads;
  readable = new Set((await sources.storedFiles()).map(({ target }) => target));
  draw();
  queue.onChange(() => { if (left(uploads, queue.items).length < uploads.length) draw(); });
}
