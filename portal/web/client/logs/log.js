// A log: loads its end first, earlier parts on request; follows it while its job or session runs.
import { messageOf } from "../common/dom.js";
import { LogText } from "./text.js";
import { logLines } from "../common/spans.js";

const box = document.getElementById("log");
const state = document.getElementById("log-state");
const follow = document.getElementById("follow");
const wrap = document.getElementById("wrap");
const earlier = document.getElementById("earlier");
const find = document.getElementById("find");
const text = new LogText(box);
const EVERY = 2000;
let start = 0; // the loaded part, in bytes of the log
let next = 0;
let loaded = false; // whether a part is loaded
// The writer of the log, the log's name, a query for a part of it, and whether lines begin with times.
const { url, writer, log, part, app, times } = box.dataset;
const shown = (/** @type {string} */ body) => (times === undefined ? body : logLines(body));

/** A response without the log; `final`: retrying is useless. */
class Unreadable extends Error {
  /** @param {string} message @param {boolean} final */
  constructor(message, final) {
    super(message);
    this.final = final;
  }
}

/** @param {Record<string, string>} query */
async function ask(query) {
  const parameters = new URLSearchParams({ ...query, ...Object.fromEntries(new URLSearchParams(part)) });
  const response = await fetch(`${url}?${parameters}`, { redirect: "error" });
  const body = await response.text();
  const over = response.headers.get("X-Over") === "yes";
  if (!response.ok) {
    const hasText = [409, 503].includes(response.status);
    throw new Unreadable(hasText ? body : `The ${log} cannot be read.`, response.status === 409 && over);
  }
  const number = (/** @type {string} */ name) => Number(response.headers.get(name));
  return { text: body, offset: number("X-Offset"), next: number("X-Next-Offset"), over };
}

async function read() {
  /** @type {number | null} */
  let wait = EVERY;
  try {
    const piece = await ask(loaded ? { offset: String(next) } : {});
    const first = !loaded;
    if (!first && piece.offset < next) restart();
    if (first || piece.offset < next) begin(piece.offset);
    const body = wholeLines(piece.text);
    if (body) {
      text.append(shown(body));
      counted();
      if (follow.checked) toEnd();
    }
    if (piece.next > next && !first) wait = piece.text.length > 100_000 ? 0 : EVERY;
    else if (piece.over && !first) wait = null;
    else if (first) wait = 0;
    next = piece.next;
    loaded = true;
    state.textContent = says(piece.over && wait === null);
  } catch (error) {
    const lost = error instanceof TypeError; // the browser's own message says little to users
    const final = error instanceof Unreadable && error.final;
    state.textContent = final ? error.message : `${lost ? "Connection lost." : messageOf(error)} Trying again…`;
    wait = final ? null : 2 * EVERY;
  }
  if (wait !== null) setTimeout(read, wait);
}

// A long log comes in pieces that may end within a line, and within its time.
let partial = "";
/** @param {string} piece */
function wholeLines(piece) {
  const body = partial + piece;
  const end = piece.length > 100_000 && !body.endsWith("\n") ? body.lastIndexOf("\n") + 1 : body.length;
  partial = body.slice(end);
  return body.slice(0, end);
}

// Clears the text when the file became shorter, as after a requeue of its job.
function restart() {
  text.clear();
  partial = "";
}

/** @param {boolean} over */
function says(over) {
  if (app && !next) return "";
  if (app && !text.pieces.length) return `It has written nothing${start ? " here" : over ? "." : " yet."}`;
  if (over) return next ? `This is the end; the ${writer} is over.` : `The ${writer} is over and left no ${log}.`;
  return next ? `Continues while the ${writer} runs.` : "Nothing has been written yet.";
}

function toEnd() {
  box.scrollTop = box.scrollHeight;
  requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; }); // again after layout
}

// Earlier parts

/** @param {number} offset */
function begin(offset) {
  start = offset;
  earlier.hidden = start === 0;
  const size = start > 1e6 ? `${(start / 1e6).toFixed(1)} MB` : `${Math.ceil(start / 1000)} KB`;
  earlier.firstElementChild.textContent = `Load earlier lines (${size} more)`;
}
earlier.firstElementChild.addEventListener("click", async (event) => {
  const button = event.target;
  button.disabled = true;
  try {
    const piece = await ask({ before: String(start) });
    follow.checked = false;
    text.prepend(shown(piece.text));
    counted();
    begin(piece.offset);
  } catch {
    button.textContent = "That did not work. Try again";
  }
  button.disabled = false;
});

// Scrolling away from the end turns following off, scrolling to the end turns it on.
let touched = -Infinity;
for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
  box.addEventListener(kind, () => { touched = performance.now(); }, { passive: true });
}
box.addEventListener("scroll", () => {
  if (performance.now() - touched > 1000) return;
  follow.checked = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
}, { passive: true });
follow.addEventListener("change", () => {
  if (follow.checked) toEnd();
});
wrap.addEventListener("change", () => {
  box.classList.toggle("unwrapped", !wrap.checked);
  if (follow.checked) toEnd();
});

// Search

const findText = document.getElementById("find-text");
const count = document.getElementById("find-count");
/** @type {number | undefined} */
let typing;

function counted() {
  const matches = text.count;
  const part = start ? " in this part" : "";
  if (!findText.value) count.textContent = "";
  else if (!matches) count.textContent = `Not found${part}`;
  else count.textContent = text.current < 0 ? `${matches} found${part}` : `${text.current + 1} of ${matches}`;
  for (const button of find.querySelectorAll("[data-find]")) button.disabled = !matches;
  if (findText.value) text.mark();
}

/** @param {number} by */
function search(by) {
  clearTimeout(typing);
  if (searched !== findText.value) {
    searched = findText.value;
    text.find(searched);
  }
  if (by && text.count) {
    follow.checked = false;
    text.step(by);
  }
  counted();
}
let searched = "";
if (times !== undefined) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  document.getElementById("zone").textContent = `Times: ${zone === "UTC" ? "UTC" : zone.replaceAll("_", " ")}.`;
}
findText.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, 200, 0);
});
findText.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.shiftKey) {
    event.preventDefault();
    search(-1);
  }
});
find.addEventListener("submit", (event) => {
  event.preventDefault();
  search(1);
});
find.querySelector("[data-find='-1']").addEventListener("click", () => search(-1));
read();
