// A list of sessions or jobs: applies the filters, announces changes.
// The URL alone determines what is shown: polls, filters and the back button use it.
import htmx from "htmx.org";
import { textFields } from "../common/dom.js";
import { notifies } from "../common/notifying.js";
import { poll } from "../common/poll.js";
import * as times from "../common/times.js";

const rows = document.getElementById("rows");
const announce = document.getElementById("announce");
const filters = document.getElementById("filters");
const TYPING = 300; // milliseconds that a search waits for the next key
const MOST_NEWS = 5; // changes that are announced one by one
const FRESH = 6000; // milliseconds for which new rows are highlighted

const { url, tab: firstTab, sort: newest, one: singular, many: plural } = rows.dataset;

poll(rows, () => `${url}${location.search}`, () => singular === "session" && notifies());
// The filters may have changed while the response was in flight: wait for the next one.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.elt !== rows) return;
  if (new URL(event.detail.xhr.responseURL).search !== location.search) event.detail.shouldSwap = false;
});

// Filters, tabs, column headers and pages change the URL, and load its rows.
function show() {
  rows.dataset.mark = "";
  htmx.trigger(rows, "refresh");
}

function searchOfFilters() {
  const query = new URLSearchParams();
  for (const [name, value] of textFields(filters)) {
    const byDefault = name === "sort" && value === newest;
    if (value.trim() && !byDefault) query.set(name, value.trim());
  }
  return `?${query}`;
}

function filter() {
  clearTimeout(typing);
  const search = searchOfFilters();
  if (search === location.search) return;
  history.replaceState(null, "", search);
  show();
}

/** @type {number | undefined} */
let typing;
filters.addEventListener("input", (event) => {
  clearTimeout(typing);
  // Each status belongs to one tab.
  const tab = event.target.selectedOptions?.[0]?.dataset.tab;
  if (tab) filters.elements.state.value = tab;
  typing = setTimeout(filter, event.target.type === "search" ? TYPING : 0);
});
filters.addEventListener("submit", (event) => {
  event.preventDefault();
  filter();
});

document.addEventListener("click", (event) => {
  const target = event.target.closest?.("a[data-live]");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  history.pushState(null, "", target.href);
  follow();
});
addEventListener("popstate", follow);

// The group and the account of the usage bars, which do not filter the list.
document.addEventListener("change", (event) => {
  if (!event.target.matches?.("[data-usage]")) return;
  const query = new URLSearchParams(location.search);
  query.set(event.target.name, event.target.value);
  history.pushState(null, "", `?${query}`);
  follow();
});

// Sets the form from the URL.
function follow() {
  const query = new URLSearchParams(location.search);
  for (const field of filters.elements) {
    if (field.name) field.value = query.get(field.name) ?? { state: firstTab, sort: newest }[field.name] ?? "";
  }
  show();
}

/** @type {Record<string, string>} */
const WORDS = {
  PENDING: "is pending",
  CONFIGURING: "is starting",
  STARTING: "is starting",
  RUNNING: "is running",
  SUSPENDED: "is paused",
  COMPLETING: "is ending",
  ENDING: "is ending",
  UNKNOWN: "is in an unknown state",
};

// Without arrays, which have no single state and change too often to be announced.
function states() {
  const result = new Map();
  for (const row of rows.querySelectorAll("tr[data-state]")) {
    result.set(row.id, { name: row.dataset.name, state: row.dataset.state });
  }
  return result;
}

// Why a row disappeared, in words; "" if the list has several pages, where it may just have moved, and on tabs
// where rows stay.
const leaving = () => (rows.querySelector(".pages") ? "" : rows.querySelector("table")?.dataset.gone ?? "");

function number() {
  const tasks = rows.querySelectorAll("tr.task[data-name]").length;
  if (tasks) return tasks === 1 ? "1 task shown" : `${tasks} tasks shown`;
  const all = rows.querySelectorAll("tr[data-name]").length;
  return all === 1 ? `1 ${singular} shown` : `${all || "No"} ${plural} shown`;
}

// Announces changes, but not rows that merely match another filter.
let before = states();
let shown = location.search;
let gone = leaving();
function announceChanges() {
  const now = states();
  const news = [];
  if (shown === location.search) {
    for (const [id, { name, state }] of now) {
      if (before.get(id)?.state !== state) news.push(`${name} ${WORDS[state] ?? "has ended"}`);
    }
    for (const [id, { name }] of before) {
      if (!now.has(id) && gone) news.push(`${name} ${gone}`);
    }
  } else {
    news.push(number());
  }
  before = now;
  shown = location.search;
  gone = leaving();
  const excess = news.length - MOST_NEWS;
  if (excess > 0) news.splice(MOST_NEWS, excess, `And ${excess} more changes`);
  if (news.length) announce.textContent = `${news.join(". ")}.`;
}

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target !== rows) return;
  times.refresh();
  highlight();
  announceChanges();
});

// Sessions that were just launched are highlighted for a moment. They are removed from the URL at
// once, so that a reload does not highlight them again.
let fresh = (rows.dataset.fresh ?? "").split(" ").filter(Boolean).map((id) => `s-${id}`);
// Focuses the button of a row's app, else the row's first button.
/** @param {string} id */
export function focusRow(id) {
  const row = document.getElementById(id);
  const buttons = row ? [...row.querySelectorAll(".controls .btn")] : [];
  const main = buttons.findLast((button) => button.matches(".split .btn")) ?? buttons[0];
  main?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}
function highlight() {
  for (const id of fresh) document.getElementById(id)?.classList.add("fresh");
}
function unhighlight() {
  for (const id of fresh) document.getElementById(id)?.classList.remove("fresh");
  fresh = [];
}
const query = new URLSearchParams(location.search);
if (query.has("new")) {
  query.delete("new");
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
  shown = location.search;
  const names = fresh.map((id) => before.get(id)?.name).filter(Boolean);
  if (names.length) setTimeout(() => { announce.textContent = `Launched: ${names.join(", ")}.`; }, 300);
  focusRow(fresh[0]);
  highlight();
  setTimeout(unhighlight, FRESH);
}
