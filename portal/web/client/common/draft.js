// Drafts of long forms, stored in this tab until they are sent, so that a reload, the Back button or another
// page loses nothing. With the option `closed`, other tabs restore them as well after this one was closed,
// for some days or until the user logs out (account_menu.js).
import { formData } from "./dom.js";
import { PREFIX, readDraft } from "./drafts.js";

const NOT_STORED = new Set(["csrf_token", "who", "key", "replace", "confirmed", "afresh"]);
const TICKED = new Set(["mount", "read_only"]);
const SOON = 200; // milliseconds: a long script is not stored with every key press

// Browsers may block storage; then reading the property throws.
/** @param {boolean} closed */
function storages(closed) {
  const result = [];
  for (const name of closed ? ["sessionStorage", "localStorage"] : ["sessionStorage"]) {
    try {
      result.push(name === "localStorage" ? localStorage : sessionStorage);
    } catch {
      // Without it.
    }
  }
  return result;
}

/**
 * A field that needs special handling, by its `name`; `lost`: whether a part of it would not be stored.
 * @typedef {{ name: string, read: () => object, lost: () => boolean, write: (draft: any) => void }} SpecialField
 */

/** @typedef {import("./drafts.js").Draft} Draft */

/**
 * Stores the draft of a form, and restores it.
 * @param {{ form: () => PageElement, hasErrors: () => boolean, special?: SpecialField | null, closed?: boolean }} options
 *   `form`: the form, which responses replace; `hasErrors`: whether it shows rejected values, which are newer than
 *   the draft.
 */
export function keep({ form, hasErrors, special = null, closed = false }) {
  const user = form().querySelector("[name=who]").value;
  const name = `${PREFIX}${user} ${location.pathname}${location.search}`;
  const stores = storages(closed);
  let sent = false; // nothing is stored any more
  let sending = false; // its key is stored, so that it is not sent twice after a reload
  let restoring = false;
  /** @type {[string, FormDataEntryValue][] | null} */
  let waiting = null; // ticked folders, until the list of folders has been loaded
  let timer = 0;

  function current() {
    /** @type {[string, FormDataEntryValue][]} */
    const fields = [];
    for (const [field, value] of formData(form())) {
      if (NOT_STORED.has(field) || special?.name === field || (waiting && TICKED.has(field))) continue;
      fields.push([field, value]);
    }
    if (waiting) fields.push(...waiting.filter(([field]) => TICKED.has(field)));
    return { fields, ...special?.read() };
  }

  const first = JSON.stringify(current());

  function remove() {
    for (const storage of stores) storage.removeItem(name);
  }

  // Stores the draft, or removes it if null; returns false if that is impossible.
  /** @param {Draft | null} draft */
  function store(draft) {
    if (!draft) {
      remove();
      return true;
    }
    const key = form().querySelector("[name=key]").value;
    const text = JSON.stringify(closed ? { ...draft, key, at: Date.now() } : draft);
    let stored = false;
    for (const storage of stores) {
      try {
        storage.setItem(name, text);
        stored = true;
      } catch {
        // The storage is full.
      }
    }
    return stored;
  }

  function end() {
    sent = true;
    remove();
  }

  function now() {
    clearTimeout(timer);
    if (sent || restoring || !form()) return true;
    const draft = current();
    return store(JSON.stringify(draft) === first && !sending ? null : draft);
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(now, SOON);
  }

  /** @param {[string, FormDataEntryValue][]} fields */
  function tick(fields) {
    const ticked = new Set(fields.map(([field, value]) => `${field} ${value}`));
    const boxes = form().querySelectorAll("[type=checkbox][name]:not(:disabled)");
    for (const box of boxes) box.checked = ticked.has(`${box.name} ${box.value}`);
  }

  /** @param {Draft} draft */
  function restore(draft) {
    restoring = true; // the events below must not store half of it
    for (const [name, value] of draft.fields) {
      for (const field of form().querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
        if (field.type === "radio") field.checked ||= field.value === value && !field.disabled;
        else if (field.type !== "checkbox") field.value = String(value);
        if (field.type !== "radio" || field.checked) field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    if (draft.key) form().querySelector("[name=key]").value = draft.key;
    tick(draft.fields);
    if (document.querySelector("#folder-list[hx-get]")) waiting = draft.fields;
    special?.write(draft);
    form().querySelector("[data-restored]").hidden = false;
    restoring = false;
  }

  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => {
      if (event.target.form === form()) soon();
    });
  }
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!closed || event.detail.elt !== form()) return;
    sending = true;
    now();
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!document.getElementById("folder-list") || document.querySelector("#folder-list[hx-get]")) return;
    if (waiting && event.detail.target.id === "folder-list") tick(waiting);
    waiting = null;
    now();
  });
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    if (!form()?.contains(elt) || xhr.status !== 204 || !xhr.getResponseHeader("HX-Redirect")) return;
    end();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-afresh]")) return;
    end();
    location.reload();
  });
  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("action") === "/logout") end();
  });
  addEventListener("pagehide", now);
  // Asks only if a reload would lose something: secrets, or everything where storage is blocked.
  addEventListener("beforeunload", (event) => {
    if (sent || !form()) return;
    const lost = Boolean(special?.lost()) || !now();
    if (lost && JSON.stringify(current()) !== first) event.preventDefault();
  });

  const draft = readDraft(stores, user, name);
  if (draft && !hasErrors()) restore(draft);
}
