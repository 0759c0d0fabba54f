// The panel of running work: operations of the file server, uploads of this browser, and notes. Operations are
// polled from the server, so they reappear in another folder and after a reload.
import { element, focused, icon, messageOf } from "../common/dom.js";
import * as wording from "../common/words.js";
import * as server from "./ask.js";
import * as listing from "./folder.js";

const EVERY = 1000;
const panel = document.getElementById("work");
const list = panel.querySelector("[data-work-list]");
const shown = new Map(); // id → {item, ended}
const followed = new Map(); // id of an operation of this page → call-back at its end
const HIDDEN_KEY = "slipway-files-hidden";
let timer = 0;
/** @type {(() => void)[]} */
const closing = []; // called when the lines that have ended are closed

const VERBS = {
  copy: ["Copying", "Copied"], move: ["Moving", "Moved"], delete: ["Deleting", "Deleted"], mode: ["Setting permissions of", "Permissions set of"],
  unpack: ["Unpacking", "Unpacked"], fetch: ["Fetching", "Fetched"],
};

function hidden() {
  try {
    return new Set(JSON.parse(sessionStorage.getItem(HIDDEN_KEY) ?? "[]"));
  } catch {
    return new Set();
  }
}
/** @param {string} id */
function hide(id) {
  const all = [...hidden(), id].slice(-200);
  try {
    sessionStorage.setItem(HIDDEN_KEY, JSON.stringify(all));
  } catch {
    // It is shown again after a reload.
  }
}


// One line: {title, detail, share (0 to 1, null: unknown), state, actions: [[word, icon, call]], problems: [text]}.
/**
 * @param {string} id
 * @param {Line} line
 */
export function put(id, line) {
  const before = shown.get(id)?.item;
  const item = before ?? element("li");
  const word = before?.contains(focused()) ? focused()?.dataset.word : "";
  item.className = `is-${line.state}`;
  const head = element("div", "work-line");
  const words = element("div", "work-words");
  const title = element("strong");
  const name = element("bdi", "", line.title);
  title.append(icon(line.icon ?? "arrow-repeat"), name);
  words.append(title, element("span", "sub", line.detail ?? ""));
  head.append(words);
  for (const [verb, symbol, call] of line.actions ?? []) {
    const button = element("button", "btn btn-quiet btn-small");
    button.type = "button";
    button.dataset.word = verb;
    button.setAttribute("aria-label", `${verb}: ${line.title}`);
    button.append(icon(symbol), element("span", "", verb));
    button.addEventListener("click", call);
    head.append(button);
  }
  item.replaceChildren(head);
  if (line.state === "running" || line.state === "paused") {
    const bar = element("progress");
    bar.max = 1;
    if (line.share !== null && line.share !== undefined) bar.value = line.share;
    bar.setAttribute("aria-label", `${line.title}: ${line.detail ?? ""}`);
    item.append(bar);
  }
  if (line.problems?.length) {
    const details = element("details");
    details.open = Boolean(before?.querySelector("details")?.open);
    details.append(element("summary", "", line.problemWords ?? wording.counted(line.problems.length, "problem")));
    const lines = element("ul");
    for (const text of line.problems) lines.append(element("li", "", text));
    details.append(lines);
    item.append(details);
  }
  if (!before) list.prepend(item);
  shown.set(id, { item, ended: !["running", "paused", "asking"].includes(line.state), operation: line.operation });
  if (word) item.querySelector(`[data-word="${word}"]`)?.focus({ preventScroll: true });
  panel.hidden = false;
}

/** @param {string} id */
export function remove(id) {
  shown.get(id)?.item.remove();
  shown.delete(id);
  panel.hidden = shown.size === 0;
}

let notes = 0;
/** @param {string} text */
export function note(text, bad = false) {
  notes += 1;
  put(`note-${notes}`, { title: text, state: bad ? "bad" : "good", icon: bad ? "exclamation-triangle-fill" : "check-circle-fill" });
  wording.say(text);
}

const count = (/** @type {Operation} */ operation) => {
  const number = operation.item_count ?? operation.items.length;
  return number === 1 ? `“${wording.nameOf(operation.items[0])}”` : wording.counted(number, "item");
};

/** @param {Operation} operation */
function figures(operation) {
  const { files, files_total: total, bytes, bytes_total: all } = operation;
  const parts = [total === null ? wording.counted(files, "file") : `${wording.number.format(files)} of ${wording.counted(total, "file")}`];
  if (["copy", "unpack", "fetch"].includes(operation.kind) || (operation.kind === "move" && bytes)) {
    parts.push(all ? `${wording.size(bytes)} of ${wording.size(all)}` : wording.size(bytes));
  }
  return parts.join(", ");
}

/** @type {Record<string, string>} */
const RESULTS = { failed: "failed", cancelled: "was cancelled", interrupted: "was interrupted" };

/** @param {Operation} operation */
function draw(operation) {
  const [present, past] = VERBS[operation.kind];
  const running = operation.state === "running";
  const to = operation.to ? ` to “${wording.nameOf(operation.to)}”` : "";
  const title = operation.state === "done" ? `${past} ${count(operation)}${to}` : `${present} ${count(operation)}${to}${running ? "" : ` ${RESULTS[operation.state]}`}`;
  const share = operation.bytes_total ? operation.bytes / operation.bytes_total
    : operation.files_total ? operation.files / operation.files_total : null;
  const troubled = operation.problem_count > 0;
  put(operation.id, {
    title, share, operation: true,
    state: running ? "running" : operation.state === "done" && !troubled ? "good" : "bad",
    icon: running ? "arrow-repeat" : operation.state === "done" && !troubled ? "check-circle-fill" : "exclamation-triangle-fill",
    detail: running ? (operation.waiting ? "Waits for other operations" : [figures(operation), wording.visible(operation.current)].filter(Boolean).join(" · ")) : operation.detail || figures(operation),
    actions: running ? [["Cancel", "x-lg", () => cancel(operation.id)]] : [["Hide", "x-lg", () => { hide(operation.id); remove(operation.id); }]],
    problems: operation.problems.map((problem) => `${wording.visible(problem.name)}: ${problem.detail}`),
    problemWords: wording.counted(operation.problem_count, "problem"),
  });
}

const cancel = (/** @type {string} */ id) => server.change("operations", id, {}, "DELETE").then(draw).then(soon).catch((error) => note(messageOf(error), true));

// Follows an operation of this page to its end.
/** @param {Operation} operation */
export function follow(operation) {
  return new Promise((resolve) => {
    followed.set(operation.id, resolve);
    took(operation);
    soon();
  });
}

/** @param {Operation} operation */
function took(operation) {
  const was = followed.get(operation.id);
  if (operation.state === "running") {
    if (!was) followed.set(operation.id, () => {});
    draw(operation);
    return true;
  }
  if (was) {
    followed.delete(operation.id);
    draw(operation);
    wording.say(shown.get(operation.id).item.querySelector("strong").textContent);
    if (listing.folder()) listing.refresh();
    if (operation.state === "done" && !operation.problem_count) setTimeout(() => { hide(operation.id); remove(operation.id); }, 6000);
    was(operation);
  } else if (!hidden().has(operation.id) && !shown.has(operation.id) && operation.state !== "done" && operation.state !== "cancelled") draw(operation);
  return false;
}

async function poll() {
  clearTimeout(timer);
  try {
    const { operations } = await server.get("operations");
    if (operations.map(took).some(Boolean)) timer = setTimeout(poll, EVERY);
  } catch (error) {
    if (followed.size && !(error instanceof server.RequestError && error.status === 401)) timer = setTimeout(poll, 4 * EVERY);
  }
}
function soon() {
  clearTimeout(timer);
  if (followed.size) timer = setTimeout(poll, EVERY / 2);
}

panel.querySelector("[data-work-close]").addEventListener("click", () => {
  for (const [id, entry] of shown) {
    if (!entry.ended) continue;
    if (entry.operation) hide(id);
    remove(id);
  }
  for (const call of closing) call();
});
addEventListener("DOMContentLoaded", poll);

/** @param {() => void} call */
export function onClose(call) {
  closing.push(call);
}
