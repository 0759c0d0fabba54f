// Parsing and formatting of time limits.
const UNITS = /^(?:([0-9]+(?:\.[0-9]+)?) ?d(?:ays?)?)? ?(?:([0-9]+(?:\.[0-9]+)?) ?h(?:ours?)?)? ?(?:([0-9]+) ?m(?:in(?:utes?)?)?)?$/i;

/** Minutes of a text as the server reads it; NaN for anything else. @param {string} [text] */
export function minutes(text) {
  const clean = (text ?? "").trim();
  if (/^[0-9]{1,6}$/.test(clean)) return Number(clean);
  const clock = /^([0-9]{1,4}):([0-5][0-9])$/.exec(clean);
  if (clock) return Number(clock[1]) * 60 + Number(clock[2]);
  const match = clean && UNITS.exec(clean);
  if (!match) return NaN;
  const [days, hours, mins] = match.slice(1).map((part) => Number(part ?? 0));
  return Math.round(days * 1440 + hours * 60 + mins);
}

/** A time in full, such as 1 d 2 h. @param {number} number of minutes */
export function written(number) {
  const parts = [[Math.floor(number / 1440), "d"], [Math.floor(number / 60) % 24, "h"], [number % 60, "min"]];
  return parts.filter(([amount]) => amount).map((part) => part.join(" ")).join(" ");
}

/**
 * A time after the + or − button: by 15 minutes below an hour, by an hour above, by 4 hours above 12.
 * @param {number} number of minutes @param {number} direction 1 or -1 @param {number} most
 */
export function stepped(number, direction, most) {
  const from = number + direction;
  const by = from < 60 ? 15 : from < 720 ? 60 : 240;
  const value = (direction > 0 ? Math.floor(number / by) + 1 : Math.ceil(number / by) - 1) * by;
  return Math.min(Math.max(15, value), most);
}
