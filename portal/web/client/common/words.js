// Formatting of sizes, counts, spans and names.
const UNITS = ["B", "KB", "MB", "GB", "TB"];
export const number = new Intl.NumberFormat("en");
/** @param {number} bytes */
export function size(bytes) {
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}
export const counted = (/** @type {number} */ count, /** @type {string} */ singular, plural = `${singular}s`) => `${number.format(count)} ${count === 1 ? singular : plural}`;
/** @param {number} seconds */
export function span(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}
// A printable name: control and separator characters are replaced, as the server does.
export const visible = (/** @type {string} */ name) => name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
// The last name of a location, printable.
/** @param {string} location */
export function nameOf(location) {
  const last = location.split("/").pop() ?? "";
  try {
    return visible(decodeURIComponent(last));
  } catch {
    return last;
  }
}
export const parentOf = (/** @type {string} */ location) => location.split("/").slice(0, -1).join("/");
// A name as part of a location, as the file server writes it.
export const encode = (/** @type {string} */ name) => encodeURIComponent(name).replaceAll(/%(2B|2C|3A|3B|3D|40|24)/g, decodeURIComponent);
/** @param {string} text */
export function say(text) {
  const line = document.getElementById("announce");
  line.textContent = "";
  setTimeout(() => { line.textContent = text; }, 50);
}
