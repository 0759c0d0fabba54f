// What was entered in a long form, kept in this tab until it is sent: a reload, the Back button or
// another page loses nothing. Where a form asks for it (`closed`), another tab finds it as well, after
// this one was closed, for some days or until its user logs out (account_menu.js).
import { formData } from "./dom.js";
import { PREFIX, readDraft } from "./drafts.js";

const NOT_KEPT = new Set(["csrf_token", "who", "key", "replace", "confirmed", "afresh"]);
const TICKED = new Set(["mount", "read_only"]);
const SOON = 200; // milliseconds: a long script is not written with every letter

// Browsers may block storage: reading the property fails then.
/** @param {boolean} closed */
function storages(closed) {
  const found = [];
  for (const name of closed ? ["sessionStorage", "localStorage"] : ["sessionStorage"]) {
    try {
      found.push(name === "localStorage" ? localStorage : sessionStorage);
    } catch {
      // Without it.
    }
  }
  return found;
}

/**
 * What is no plain field, by its `name`: `lost` says whether some of it would not be kept.
 * @typedef {{ name: string, read: () => object, lost: () => boolean, write: (draft: any) => void }} More
 */

/** @typedef {import("./drafts.js").Draft} Draft */

/**
 * Keeps what is entered in a form.
 * @param {{ form: () => PageElement, wrong: () => boolean, more?: More | null, closed?: boolean }} options `form`: the
 *   form, which responses replace; `wrong`: whether it shows what was sent, which is newer; `more`: for what is
 *   no plain field.
 */
export function keep({ form, wrong, more = null, closed = false }) {
  const user = form().querySelector("[name=who]").value;
  const name = `${PREFIX}${user} ${location.pathname}${location.search}`;
  const places = storages(closed);
  let done = false; // sent: nothing is kept any more
  let begun = false; // being sent: its key is kept, so that it is not sent twice after a reload
  let restoring = false;
  /** @type {[string, FormDataEntryValue][] | null} */
  let waiting = null; // ticked folders, until the list of folders has been loaded
  let timer = 0;

  function current() {
    /** @type {[string, FormDataEntryValue][]} */
    const fields = [];
    for (const [field, value] of formData(form())) {
      if (NOT_KEPT.has(field) || more?.name === field || (waiting && TICKED.has(field))) continue;
      fields.push([field, value]);
    }
    if (waiting) fields.push(...waiting.filter(([field]) => TICKED.has(field)));
    return { fields, ...more?.read() };
  }

  const first = JSON.stringify(current());

  function remove() {
    for (const place of places) place.removeItem(name);
  }

  // Whether the draft is kept; null removes it.
  /** @param {Draft | null} draft */
  function store(draft) {
    if (!draft) {
      remove();
      return true;
    }
    const key = form().querySelector("[name=key]").value;
    const text = JSON.stringify(closed ? { ...draft, key, at: Date.now() } : draft);
    let kept = false;
    for (const place of places) {
      try {
        place.setItem(name, text);
        kept = true;
      } catch {
        // It is full.
      }
    }
    return kept;
  }

  function end() {
    done = true;
    remove();
  }

  function now() {
    clearTimeout(timer);
    if (done || restoring || !form()) return true;
    const draft = current();
    return store(JSON.stringify(draft) === first && !begun ? null : draft);
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
    more?.write(draft);
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
    begun = true;
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
  // Only what a reload would lose: secrets, or everything where storage is blocked.
  addEventListener("beforeunload", (event) => {
    if (done || !form()) return;
    const lost = Boolean(more?.lost()) || !now();
    if (lost && JSON.stringify(current()) !== first) event.preventDefault();
  });

  const draft = readDraft(places, user, name);
  if (draft && !wrong()) restore(draft);
}
