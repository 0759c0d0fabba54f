// Whether this browser's user wants to be asked before a launch without a folder.
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
    // Storage is blocked: it is asked again.
  }
}
