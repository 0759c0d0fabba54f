// Drafts of forms in the browser's storage.

/**
 * The draft of a form; `at`: its time in milliseconds. Forms may add fields (SpecialField in draft.js).
 * @typedef {{ fields: [string, FormDataEntryValue][], key?: string, at?: number } & Record<string, any>} Draft
 */

/** Prefix of the names of all drafts; the user's name follows. */
export const PREFIX = "slipway-draft ";
const DAYS = 7;

/**
 * The draft under `name` in the first of these storages that has one. Removes drafts of other users of this
 * browser.
 * @param {Storage[]} storages @param {string} user @param {string} name
 * @returns {Draft | null}
 */
export function readDraft(storages, user, name) {
  for (const storage of storages) removeOthers(storage, user);
  for (const storage of storages) {
    try {
      const draft = JSON.parse(storage.getItem(name) ?? "null");
      if (draft && Date.now() - (draft.at ?? Date.now()) < DAYS * 86_400_000) return draft;
    } catch {
      // Not a draft.
    }
  }
  return null;
}

/** @param {Storage} storage @param {string} user */
function removeOthers(storage, user) {
  for (const name of Object.keys(storage)) {
    if (name.startsWith(PREFIX) && !name.startsWith(`${PREFIX}${user} `)) storage.removeItem(name);
  }
}

/** Removes all drafts at a log-out. */
export function removeDrafts() {
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(PREFIX)) localStorage.removeItem(name);
    }
  } catch {
    // Storage is blocked: nothing is in it.
  }
}
