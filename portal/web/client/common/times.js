// Times in the user's time zone, and durations that tick without requests to the server.
let ahead = 0; // milliseconds by which the browser's clock is ahead of the server's

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const long = new Intl.DateTimeFormat([], { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "long" });

// Where there is little room, a line may begin after the day only.
const unbroken = (/** @type {string} */ part) => part.replaceAll(" ", "\u00a0");

/** @param {Date} time @param {string} form */
function shown(time, form) {
  if (form === "date" && new Date(Date.now() - ahead).getFullYear() !== time.getFullYear()) return unbroken(long.format(time));
  const today = new Date(Date.now() - ahead).toDateString() === time.toDateString();
  const text = (form === "seconds" ? seconds : clock).format(time);
  return today ? text : `${unbroken(day.format(time))}, ${unbroken(text)}`;
}

/** @param {number} milliseconds */
function span(milliseconds) {
  const total = Math.max(0, Math.floor(milliseconds / 1000));
  const days = Math.floor(total / 86400);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const rest = `${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
  const hours = Math.floor(total / 3600) % 24;
  return days ? `${days} d ${two(hours)}:${rest}` : `${hours}:${rest}`;
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
    element.textContent = span(end - Date.parse(element.dataset.from));
  }
  for (const element of document.querySelectorAll(".remaining")) {
    const left = Date.parse(element.dataset.until) - Date.now() + ahead;
    element.textContent = left > 0 ? `in ${span(left)}` : "now";
  }
}

// "5 min": how long ago a time was, in one unit.
/** @param {string} since */
export function age(since) {
  const minutes = Math.max(0, Math.floor((Date.now() - ahead - Date.parse(since)) / 60000));
  if (minutes < 1) return "less than 1 min";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
}

// A log's times are UTC; the lines are shown with the reader's own: 2026-01-31 14:05:09.
export const logLines = (/** @type {string} */ text) => text.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(?= )/gm, (/** @type {string} */ stamp) => {
  const moment = new Date(stamp);
  return Number.isNaN(moment.getTime()) ? stamp : moment.toLocaleString("sv-SE");
});

export function refresh() {
  localise();
  tick();
}

// By the server's clock.
export const now = () => Date.now() - ahead;

/** @param {string | null} date the header of an answer */
export function setServerTime(date) {
  const offset = Date.now() - Date.parse(date ?? "");
  // The header has whole seconds and takes a while to arrive: ignore small differences.
  if (Number.isFinite(offset)) ahead = Math.abs(offset) > 3000 ? offset : 0;
}
refresh();
setInterval(tick, 1000);
