// The announcements that this browser has hidden: the marks of their texts.
const KEY = "slipway-hidden-announcements";
const MOST = 100; // the oldest are dropped first

/** @returns {string[]} */
export function hidden() {
  try {
    const marks = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(marks) ? marks.filter((mark) => typeof mark === "string") : [];
  } catch {
    return []; // storage may be blocked, or hold something else
  }
}

/** @param {string} mark */
export function hide(mark) {
  try {
    localStorage.setItem(KEY, JSON.stringify([...hidden(), mark].slice(-MOST)));
  } catch {
    // It is hidden on this page only.
  }
}
