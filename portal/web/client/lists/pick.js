// Selecting rows of a list. Each button of the bar has a verb; jobs/actions.js and sessions/end.js act on its click.
import htmx from "htmx.org";
import { focusRow } from "./list.js";

const rows = document.getElementById("rows");
const bar = document.getElementById("picked");
const { one: singular, many: plural } = rows.dataset;
const picked = new Set();

const boxes = () => [...rows.querySelectorAll("input[name=ids]")];
export const counted = (/** @type {number} */ number) => (number === 1 ? singular : `${number} ${plural}`);

// The selected boxes that a button acts on: all, or those whose rows offer its action.
/** @param {string} [action] */
function chosenBoxes(action) {
  const selectedBoxes = boxes().filter((box) => picked.has(box.value));
  return action ? selectedBoxes.filter((box) => box.closest("tr").dataset.actions.split(" ").includes(action)) : selectedBoxes;
}

/** The ids of the selected rows. @param {string} [action] */
export const chosen = (action) => chosenBoxes(action).map((box) => box.value);

/** @param {PageElement} button */
function label(button) {
  const number = chosenBoxes(button.dataset.action).length;
  button.hidden = number === 0;
  const text = `${button.dataset.verb} ${counted(number)}`;
  const words = button.querySelector("span");
  if (words.textContent !== text) words.textContent = text;
}

// Restores the selection after an update of the rows; those that left the list are deselected.
function draw() {
  const there = boxes();
  const values = new Set(there.map((box) => box.value));
  for (const id of picked) if (!values.has(id)) picked.delete(id);
  for (const box of there) {
    box.checked = picked.has(box.value);
    box.closest("tr").classList.toggle("is-picked", box.checked);
  }
  const all = document.getElementById("pick-all");
  if (all) {
    all.checked = there.length > 0 && picked.size === there.length;
    all.indeterminate = picked.size > 0 && !all.checked;
    all.disabled = there.length === 0;
  }
  bar.hidden = picked.size === 0;
  const text = `${picked.size} selected`;
  const count = document.getElementById("picked-count");
  if (count.textContent !== text) count.textContent = text;
  for (const button of bar.querySelectorAll("[data-verb]")) label(button);
  bar.querySelector("[data-pick-all]").hidden = picked.size === there.length;
}

/** @param {boolean} selected */
function pick(selected) {
  for (const box of boxes()) {
    if (selected) picked.add(box.value);
    else picked.delete(box.value);
  }
  draw();
}

rows.addEventListener("change", (event) => {
  if (event.target.id === "pick-all") {
    pick(event.target.checked);
  } else if (event.target.name === "ids") {
    if (event.target.checked) picked.add(event.target.value);
    else picked.delete(event.target.value);
    draw();
  }
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target === rows) draw();
});
document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-pick-all]")) {
    pick(true);
  } else if (event.target.closest?.("[data-pick-none]")) {
    pick(false);
    rows.querySelector("input[name=ids]")?.focus();
  }
});

// After an action, focuses the next remaining row, else the previous one, else the start of the page.
/** @param {string[]} ids */
function focusBeside(ids) {
  const all = [...rows.querySelectorAll("tr[data-name]")].map((row) => row.id);
  const first = Math.max(all.findIndex((id) => ids.includes(id)), 0);
  const left = [...all.slice(first), ...all.slice(0, first).reverse()].filter((id) => !ids.includes(id));
  if (left.length) focusRow(left[0]);
  else document.querySelector(".start, #tabs [aria-current]")?.focus({ preventScroll: true });
}

// Sends a dialog's form; the response is the list. If the portal did not respond, the message of failed()
// disappears with the next response, since the list then shows the outcome.
/**
 * @param {PageElement} form
 * @param {string} address
 * @param {Record<string, unknown>} values
 * @param {{ failed: (status: number) => string, focus?: string[] }} options
 */
export function send(form, address, values, { failed, focus = [] }) {
  const trouble = document.getElementById("trouble");
  form.closest("dialog")?.close();
  if (focus.length) focusBeside(focus);
  trouble.hidden = true;
  picked.clear();
  draw();
  rows.dataset.mark = "";
  problems.set(form, failed);
  htmx.ajax("post", `${address}${location.search}`, { source: form, target: rows, swap: "morph:innerHTML", values });
}

const problems = new Map();
let outdated = false;
/** @param {HtmxEvent} event */
function report(event) {
  const failed = problems.get(event.detail.elt);
  if (!failed) return;
  const trouble = document.getElementById("trouble");
  const status = event.detail.xhr.status;
  trouble.textContent = failed(status);
  trouble.hidden = false;
  outdated = status === 0 || status >= 500;
}
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (event.detail.elt !== rows || event.detail.xhr.status >= 400 || !outdated) return;
  outdated = false;
  document.getElementById("trouble").hidden = true;
});
for (const kind of ["sendError", "timeout", "responseError"]) document.addEventListener(`htmx:${kind}`, report);

draw();
