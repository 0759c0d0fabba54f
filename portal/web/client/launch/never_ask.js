// The setting of this browser to launch without a folder without asking.
const KEY = "slipway-no-folder-is-fine";

export function mayGoWithout() {
  try {
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false; // storage may be blocked
  }
}

export function neverAsk() {
  try {
    localStorage.setItem(KEY, "yes");
  } catch {
    // Storage is blocked: the question appears again.
  }
}
