// The composer works without this; it adds the editor, and keeps what was entered while a response
// replaces the form, and after that (common/draft.js).
import * as drafts from "../common/draft.js";
import { edit } from "../libraries/editor.js";

const form = () => document.getElementById("compose");
const textarea = () => form().querySelector("[name=script]");
/**
 * The editor of the text that the form shows.
 * @typedef {{ host: HTMLElement, invalid: boolean, text: string, handle: ReturnType<typeof edit> }} Shown
 */
/** @type {Shown | null} */
let editor = null;

function host() {
  const made = document.createElement("div");
  made.className = "editor";
  textarea().after(made);
  return made;
}

// The editor of before the response goes on, with its history, if it has the same text.
function mount() {
  const field = textarea();
  const invalid = field.getAttribute("aria-invalid") === "true";
  field.hidden = true;
  if (editor && editor.text === field.value && editor.invalid === invalid) {
    field.after(editor.host);
    return;
  }
  editor?.handle.destroy();
  const place = host();
  const made = /** @type {Shown} */ (/** @type {unknown} */ ({ host: place, invalid, text: field.value }));
  const error = document.getElementById("error-script");
  made.handle = edit(place, {
    text: field.value,
    label: "Script",
    description: [invalid ? error.textContent.trim() : "", "Press Escape, then Tab, to leave the editor."].join(" ").trim(),
    invalid,
    changed: (/** @type {string} */ text) => {
      made.text = text;
      textarea().value = text;
      textarea().dispatchEvent(new Event("input", { bubbles: true }));
    },
  });
  editor = made;
}

function prepare() {
  if (!form() || form().classList.contains("ready")) return;
  form().classList.add("ready");
  // htmx inserts what is in <noscript> as elements, which must not be submitted.
  for (const field of form().querySelectorAll("noscript [name]")) field.remove();
  mount();
}

// Where a response has something to say.
function goToNews() {
  const wrong = form().querySelector("[role=alert]:not([hidden]), .field-error:not([hidden])");
  const news = wrong ?? form().querySelector("[data-news]");
  if (!news) return;
  news.scrollIntoView({ block: "center" });
  const field = wrong && form().querySelector(`[aria-describedby~="${wrong.id}"]`);
  if (wrong?.id === "error-script" && editor) editor.handle.focus();
  else if (field?.checkVisibility()) field.focus();
  else {
    news.tabIndex = -1;
    news.focus({ preventScroll: true });
  }
}

/** @param {boolean} lost @param {boolean} refused */
function trouble(lost, refused) {
  form().querySelector("[data-lost]").hidden = !lost;
  form().querySelector("[data-refused]").hidden = !refused;
  if (lost || refused) goToNews();
}

const ours = (/** @type {(detail: HtmxDetail) => void} */ then) => (/** @type {HtmxEvent} */ event) => {
  if (form()?.contains(event.detail.elt) && !event.detail.elt.closest("#folder-list")) then(event.detail);
};
document.addEventListener("htmx:beforeRequest", ours(() => trouble(false, false)));
document.addEventListener("htmx:sendError", ours(() => trouble(true, false)));
document.addEventListener("htmx:timeout", ours(() => trouble(true, false)));
document.addEventListener("htmx:responseError", ours(({ xhr }) => {
  const panel = xhr.getResponseHeader("X-Slipway-Panel") === "compose";
  if (!panel) trouble(xhr.status > 500, xhr.status <= 500);
}));
document.addEventListener("slipway:refused", ours(() => trouble(false, true)));

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.getResponseHeader("X-Slipway-Panel") !== "compose") return;
  event.detail.shouldSwap = true; // a refused job returns the form with its errors
  event.detail.isError = false;
});
document.addEventListener("htmx:afterSettle", (event) => {
  prepare();
  if (event.detail.target?.id !== "folder-list") goToNews();
});

document.addEventListener("click", (event) => {
  const label = event.target.closest?.("label[for=field-script]");
  if (!label || !editor) return;
  event.preventDefault();
  editor.handle.focus();
});
// A page from the back/forward cache has a key that was used.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// Before the editor is made, which shows the text that came back.
drafts.keep({
  form,
  wrong: () => form().querySelector(".alert-line.bad[role=alert]:not([hidden])") !== null,
  closed: true,
});
prepare();
