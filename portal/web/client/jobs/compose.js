// The composer works without this; it adds the editor, and preserves entered values when a response replaces
// the form, and in drafts (common/draft.js).
import * as drafts from "../common/draft.js";
import { edit } from "../libraries/editor.js";

const form = () => document.getElementById("compose");
const textarea = () => form().querySelector("[name=script]");
/**
 * The editor of the form's script.
 * @typedef {{ host: HTMLElement, invalid: boolean, text: string, handle: ReturnType<typeof edit> }} ScriptEditor
 */
/** @type {ScriptEditor | null} */
let editor = null;

function host() {
  const node = document.createElement("div");
  node.className = "editor";
  textarea().after(node);
  return node;
}

// Reuses the editor of before the response, with its history, if it has the same text.
function mount() {
  const field = textarea();
  const invalid = field.getAttribute("aria-invalid") === "true";
  field.hidden = true;
  if (editor && editor.text === field.value && editor.invalid === invalid) {
    field.after(editor.host);
    return;
  }
  editor?.handle.destroy();
  const container = host();
  const created = /** @type {ScriptEditor} */ (/** @type {unknown} */ ({ host: container, invalid, text: field.value }));
  const error = document.getElementById("error-script");
  created.handle = edit(container, {
    text: field.value,
    label: "Script",
    description: [invalid ? error.textContent.trim() : "", "Press Escape, then Tab, to leave the editor."].join(" ").trim(),
    invalid,
    changed: (/** @type {string} */ text) => {
      created.text = text;
      textarea().value = text;
      textarea().dispatchEvent(new Event("input", { bubbles: true }));
    },
  });
  editor = created;
}

function prepare() {
  if (!form() || form().classList.contains("ready")) return;
  form().classList.add("ready");
  // htmx inserts the content of <noscript> as elements, which must not be submitted.
  for (const field of form().querySelectorAll("noscript [name]")) field.remove();
  mount();
}

// Scrolls to an error or notice of the response.
function goToNews() {
  const alert = form().querySelector("[role=alert]:not([hidden]), .field-error:not([hidden])");
  const news = alert ?? form().querySelector("[data-news]");
  if (!news) return;
  news.scrollIntoView({ block: "center" });
  const field = alert && form().querySelector(`[aria-describedby~="${alert.id}"]`);
  if (alert?.id === "error-script" && editor) editor.handle.focus();
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
  hasErrors: () => form().querySelector(".alert-line.bad[role=alert]:not([hidden])") !== null,
  closed: true,
});
prepare();
