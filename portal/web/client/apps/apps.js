// The app launcher: in a dialog of the Sessions page, or on its own page. It polls while it is open;
// entered values stay.
import { focused, formData } from "../common/dom.js";
import * as times from "../common/times.js";

const EVERY = 2000; // milliseconds between two polls
const SOON = 400; // after a click has started something
const dialog = document.getElementById("apps");
const shown = new Map(); // the server's last HTML of each part
/** @type {number | undefined} */
let timer;
const stopping = new Map(); // the last request to stop or restart each app

const launcher = () => document.querySelector("[data-app-launcher]");
const parts = (/** @type {PageElement} */ root) => [...root.querySelectorAll("[data-live]")];

/** @param {string} text */
function announce(text) {
  const line = launcher()?.querySelector("[data-announce]");
  if (line) line.textContent = text;
}

/** @param {PageElement} root */
function remember(root) {
  shown.clear();
  for (const part of parts(root)) shown.set(part.id, part.innerHTML);
}

/** @param {string} address */
async function load(address, options = {}) {
  const response = await fetch(address, { ...options, headers: { "HX-Request": "true" } });
  const redirect = response.headers.get("HX-Redirect"); // the login has expired
  if (redirect) location.href = redirect;
  if (!response.ok) throw new Error(String(response.status));
  return new DOMParser().parseFromString(await response.text(), "text/html").querySelector("[data-app-launcher]");
}

// Replaces only what has changed, and keeps the keyboard focus.
/** @param {PageElement} fresh */
function renew(fresh) {
  const now = parts(fresh);
  if (now.length !== shown.size || now.some((part) => !shown.has(part.id))) {
    remember(fresh);
    replace(launcher(), fresh);
  }
  for (const part of now) {
    const current = document.getElementById(part.id);
    if (!current || shown.get(part.id) === part.innerHTML) continue;
    const focusedElement = current.contains(focused()) ? focused() : null;
    const open = new Set([...current.querySelectorAll("details[open]")].map((detail) => detail.id));
    shown.set(part.id, part.innerHTML);
    current.replaceChildren(...part.cloneNode(true).childNodes);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    announceState(part);
    if (focusedElement) (document.getElementById(focusedElement.id) ?? current.closest("[data-app]")?.querySelector("[data-open] .btn-open"))?.focus();
  }
  times.refresh();
}

// An app was added or removed: replaces everything, but keeps entered values and open details.
/** @param {PageElement} old @param {PageElement} fresh */
function replace(old, fresh) {
  const active = old.contains(focused()) ? focused()?.id : "";
  const entered = [...old.querySelectorAll("[data-open] input[id]")].filter(
    (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked,
  );
  const unfolded = [...old.querySelectorAll("details[open]")].map((detail) => detail.id);
  old.replaceWith(fresh);
  for (const field of entered) {
    const now = document.getElementById(field.id);
    if (!now) continue;
    now.value = field.value;
    now.checked = field.checked;
  }
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (active) document.getElementById(active)?.focus();
}

// A card's state for screen readers.
/** @param {PageElement} part */
function announceState(part) {
  const word = part.id.startsWith("chip-") && part.textContent.trim();
  const title = document.getElementById(part.id)?.closest("h2, h3")?.firstChild.textContent?.trim();
  if (word && title) announce(`${title}: ${word}`);
}

async function poll() {
  clearTimeout(timer);
  const now = launcher();
  if (!now || (dialog && !dialog.open)) return;
  try {
    if (!document.hidden) {
      const fresh = await load(now.dataset.appLauncher);
      if (launcher() === now) renew(fresh);
    }
  } catch {
    // The portal is temporarily unavailable; keep the current content.
  }
  clearTimeout(timer);
  timer = setTimeout(poll, EVERY);
}

function pollSoon() {
  clearTimeout(timer);
  timer = setTimeout(poll, SOON);
}

/** @param {string} address */
async function show(address) {
  let fresh;
  try {
    fresh = await load(address);
  } catch {
    location.href = address; // the page shows the error
    return;
  }
  remember(fresh);
  dialog.querySelector("[data-content]").replaceChildren(fresh);
  times.refresh();
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("[data-open] .btn-open")?.focus();
  pollSoon();
}

/** @param {HTMLElement} form @param {PageElement} button */
function act(form, button) {
  button.disabled = true; // against double clicks
  const body = formData(form);
  const ending = button.closest(".app-stop")?.id;
  // At the server, a stop could overtake a preceding restart. Other requests do not wait for them.
  const sent = Promise.resolve(stopping.get(ending)).then(() => send(body, button));
  if (ending) stopping.set(ending, sent);
}

/** @param {FormData} body @param {PageElement} button */
async function send(body, button) {
  try {
    const fresh = await load(button.formAction, { method: "POST", body });
    renew(fresh);
    announce(button.dataset.said);
  } catch {
    announce("That did not work. Try again.");
  }
  button.disabled = false; // it stays in the page where its part has not changed
}

/** @param {PageElement} button */
async function copy(button) {
  const field = document.getElementById(button.dataset.copy);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    announce("Copied.");
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), EVERY);
  } catch {
    announce("It is selected: copy it with the keyboard."); // plain http, or no permission
  }
}

// Expands the details with an app's field, and focuses the field.
/** @param {PageElement} field */
function unfold(field) {
  field.closest("details").open = true;
  field.focus();
  field.scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (event) => {
  const target = event.target.closest?.("a[data-apps], [data-apps-close], [data-copy], [data-unfold]");
  if (!target) {
    if (event.target === dialog) dialog.close(); // a click on the backdrop
    return;
  }
  if (target.dataset.copy) return void copy(target);
  if (target.dataset.unfold) {
    event.preventDefault();
    return unfold(document.getElementById(target.dataset.unfold));
  }
  if ("appsClose" in target.dataset) return dialog.close();
  if (!dialog || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  show(target.href);
});

document.addEventListener("submit", (event) => {
  if (event.target.id === "apps-act") {
    event.preventDefault();
    if (event.submitter) act(event.target, event.submitter);
  } else if ("open" in event.target.dataset && event.target.closest("[data-app-launcher]")) {
    const needed = document.getElementById(event.submitter?.dataset.needs ?? "");
    if (needed && !needed.value.trim()) {
      event.preventDefault();
      return unfold(needed);
    }
    const publish = event.target.elements.public?.checked;
    // The app's window comes to the front; the dialog is needed only to see a public address.
    if (dialog?.open && !publish) dialog.close();
    // A port is tried once; the prompt's answer stays, since a different one restarts the app.
    const port = event.target.elements.preferred_port;
    if (port) setTimeout(() => { port.value = ""; }, 0);
    pollSoon();
  }
});

if (!dialog && launcher()) {
  remember(launcher());
  pollSoon();
}
