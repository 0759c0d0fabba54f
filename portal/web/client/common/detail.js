// The page of one session or job: updates it, announces changes, and shows the ends of its logs.
import htmx from "htmx.org";
import { poll } from "./poll.js";
import { logLines } from "./spans.js";
import * as times from "./times.js";

const head = document.getElementById("detail-head");
const announce = document.getElementById("announce");
const ends = [...document.querySelectorAll(".log-end")];
const use = document.getElementById("job-use");
const LOG_EVERY = 10e3; // milliseconds
const USE_EVERY = 10e3;
const LINES = 14;

const now = () => head.querySelector(".detail-head").dataset;
let state = now().state;

poll(head);

// The server does not know which details are open: its new parts would close them.
const open = new Set();
document.addEventListener("toggle", ({ target }) => {
  if (!target.id || !target.matches("details")) return;
  if (target.open) open.add(target.id);
  else open.delete(target.id);
}, true);
/** @type {string[]} */
let unfolded = [];
document.addEventListener("htmx:beforeSwap", () => { unfolded = [...open]; });

document.addEventListener("htmx:afterSettle", () => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  times.refresh();
  if (now().state === state) return;
  state = now().state;
  announce.textContent = `${now().name} ${now().says}.`;
  for (const end of ends) readLog(end);
  look();
});

// Loads the end of a log from the login node: rarely, and only while the page is visible.
const timers = new Map();
/** @param {PageElement} end */
async function readLog(end) {
  clearTimeout(timers.get(end));
  let over = false;
  if (!document.hidden) {
    try {
      const response = await fetch(end.dataset.url, { redirect: "error" });
      const text = await response.text();
      over = response.headers.get("X-Over") === "yes";
      if (response.ok) show(end, text);
      else say(end, [409, 503].includes(response.status) ? text : `The ${end.dataset.log} cannot be read.`);
    } catch {
      // The portal is unavailable; keep the current content.
    }
  }
  if (!over) timers.set(end, setTimeout(readLog, LOG_EVERY, end));
}

/** @param {PageElement} end @param {string} words */
function say(end, words) {
  const line = document.createElement("p");
  line.className = "sub";
  line.textContent = words;
  end.replaceChildren(line);
}

/**
 * @param {PageElement} end
 * @param {string} text
 */
function show(end, text) {
  const last = text.trimEnd().split("\n").slice(-LINES).join("\n");
  const lines = "times" in end.dataset ? logLines(last) : last;
  if (!lines) {
    say(end, "Nothing has been written yet.");
    return;
  }
  const pre = end.querySelector("pre") ?? document.createElement("pre");
  if (!pre.isConnected) {
    pre.tabIndex = 0;
    pre.setAttribute("role", "group");
    pre.setAttribute("aria-label", `Last lines of the ${end.dataset.log}`);
    end.replaceChildren(pre);
  }
  if (pre.textContent === lines) return;
  pre.textContent = lines;
  pre.scrollTop = pre.scrollHeight;
}
for (const end of ends) readLog(end);

// A job's usage: Slurm's nodes are queried only while the page is visible.
/** @type {number | undefined} */
let looking;
function look() {
  clearTimeout(looking);
  if (!use) return;
  if (!document.hidden) htmx.trigger(use, "look");
  looking = setTimeout(look, USE_EVERY);
}
addEventListener("load", look);
