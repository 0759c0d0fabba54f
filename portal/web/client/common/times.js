// Times in the user's time zone, and durations that tick without requests to the server.
import { ageWords, clockSpan } from "./spans.js";

let ahead = 0; // milliseconds by which the browser's clock is ahead of the server's

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const long = new Intl.DateTimeFormat([], { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "long" });

// In narrow columns, lines break only after the day.
const unbroken = (/** @type {string} */ part) => part.replaceAll(" ", "\u00a0");

/** @param {Date} time @param {string} form */
function shown(time, form) {
  if (form === "date" && new Date(Date.now() - ahead).getFullYear() !== time.getFullYear()) return unbroken(long.format(time));
  const today = new Date(Date.now() - ahead).toDateString() === time.toDateString();
  const text = (form === "seconds" ? seconds : clock).format(time);
  return today ? text : `${unbroken(day.format(time))}, ${unbroken(text)}`;
}

function localise() {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const time = new Date(element.dateTime);
    const text = shown(time, element.dataset.form);
    if (element.textContent !== text) element.textContent = text;
    element.title = full.format(time);
  }
}

function tick() {
  for (const element of document.querySelectorAll(".elapsed")) {
    const end = element.dataset.to ? Date.parse(element.dataset.to) : Date.now() - ahead;
    element.textContent = clockSpan(end - Date.parse(element.dataset.from));
  }
  for (const element of document.querySelectorAll(".remaining")) {
    const left = Date.parse(element.dataset.until) - Date.now() + ahead;
    element.textContent = left > 0 ? `in ${clockSpan(left)}` : "now";
  }
}

// The age of a time, in words.
/** @param {string} since */
export const age = (since) => ageWords(Date.now() - ahead - Date.parse(since));

export function refresh() {
  localise();
  tick();
}

// The time by the server's clock.
export const now = () => Date.now() - ahead;

/** @param {string | null} date the header of a response */
export function setServerTime(date) {
  const offset = Date.now() - Date.parse(date ?? "");
  // The header has whole seconds and takes a while to arrive: ignore small differences.
  if (Number.isFinite(offset)) ahead = Math.abs(offset) > 3000 ? offset : 0;
}
refresh();
setInterval(tick, 1000);
