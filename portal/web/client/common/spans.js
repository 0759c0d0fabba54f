// Lengths of time in words and figures, and the times of logs.

/** A span such as 0:05:09 or 2 d 03:04:05. @param {number} milliseconds */
export function clockSpan(milliseconds) {
  const total = Math.max(0, Math.floor(milliseconds / 1000));
  const days = Math.floor(total / 86400);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const minutesAndSeconds = `${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
  const hours = Math.floor(total / 3600) % 24;
  return days ? `${days} d ${two(hours)}:${minutesAndSeconds}` : `${hours}:${minutesAndSeconds}`;
}

/** A span in one unit: "5 min". @param {number} milliseconds */
export function ageWords(milliseconds) {
  const minutes = Math.max(0, Math.floor(milliseconds / 60000));
  if (minutes < 1) return "less than 1 min";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
}

// A log's times are UTC; the lines are shown with the reader's own: 2026-01-31 14:05:09.
export const logLines = (/** @type {string} */ text) => text.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(?= )/gm, (/** @type {string} */ stamp) => {
  const moment = new Date(stamp);
  return Number.isNaN(moment.getTime()) ? stamp : moment.toLocaleString("sv-SE");
});
