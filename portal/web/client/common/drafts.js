// Drafts of forms in the browser's storage.

/**
 * What is kept of a form; `at`: when, in milliseconds. A form may have fields of its own (More in draft.js).
 * @typedef {{ fields: [string, FormDataEntryValue][], key?: string, at?: number } & Record<string, any>} Draft
 */

/** What the names of all drafts begin with; the user's name follows. */
export const PREFIX = "slipway-draft ";
const DAYS = 7;

/**
 * The draft under `name` in the first of these storages that has one. Drafts of other users of this browser,
 * which are of no use to anybody, are removed.
 * @param {Storage[]} places @param {string} user @param {string} name
 * @returns {Draft | null}
 */
export function readDraft(places, user, name) {
  for (const place of places) removeOthers(place, user);
  for (const place of places) {
    try {
      const draft = JSON.parse(place.getItem(name) ?? "null");
      if (draft && Date.now() - (draft.at ?? Date.now()) < DAYS * 86_400_000) return draft;
    } catch {
      // Not ours.
    }
  }
  return null;
}

/** @param {Storage} place @param {string} user */
function removeOthers(place, user) {
  for (const name of Object.keys(place)) {
    if (name.startsWith(PREFIX) && !name.startsWith(`${PREFIX}${user} `)) place.removeItem(name);
  }
}

/** Removes all, as at a log-out. */
export function removeDrafts() {
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(PREFIX)) localStorage.removeItem(name);
    }
  } catch {
    // Storage is blocked: nothing is in it.
  }
}
