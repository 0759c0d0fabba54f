// The launch wizard: shows one step at a time, updates bounds with the resource group, and asks
// before a launch without a folder. Without this script all steps are shown, one below the other.
import htmx from "htmx.org";
import * as times from "../common/times.js";
import * as checks from "./checks.js";
import * as env from "./env.js";
import { mayGoWithout, neverAsk } from "./never_ask.js";
import { megabytes, stepped, written } from "./sizes.js";

const STEPS = ["environment", "folders", "resources", "review"];
const ask = document.getElementById("no-folder");
let agreed = false;
/** @type {Map<string, boolean> | null} */
let ticked = null; // the checkboxes' states before the list of folders is replaced

const wizard = () => document.getElementById("wizard");
const at = () => wizard().dataset.at;
const fieldNamed = (/** @type {string} */ name) => wizard().querySelector(`[name="${name}"]`);
const chosen = (/** @type {string} */ name) => wizard().querySelector(`[name="${name}"]:checked`);

// Steps

/** @param {string} step */
function show(step, focus = true) {
  const form = wizard();
  const index = STEPS.indexOf(step);
  form.dataset.at = step;
  for (const section of form.querySelectorAll("[data-step]")) {
    section.hidden = section.dataset.step !== step;
  }
  form.querySelectorAll(".steps [data-go]").forEach((link, number) => {
    link.toggleAttribute("aria-current", false);
    if (number === index) link.setAttribute("aria-current", "step");
    link.parentElement.classList.toggle("done", number < index);
  });
  form.querySelector("[data-back]").hidden = index === 0;
  form.querySelector("[data-next]").hidden = index === STEPS.length - 1;
  summary();
  if (step === "review") {
    form.querySelector("[data-loading]")?.removeAttribute("hidden");
    htmx.trigger("#review-text", "review");
  }
  if (!focus) return;
  document.getElementById(`title-${step}`).focus({ preventScroll: true });
  scrollTo({ top: 0 });
}

/** @param {string} step @param {string | undefined} [field] */
function go(step, field) {
  if (step !== at()) {
    history.pushState({ step }, "", `#${step}`);
    show(step);
  }
  if (field === "env") env.open();
  else if (field) checks.focus(field, step);
}

// The next step, unless the server finds something wrong in this one.
async function next() {
  const from = at();
  const fine = await checks.step(from);
  if (at() !== from) return;
  if (fine) go(STEPS[Math.min(STEPS.indexOf(from) + 1, STEPS.length - 1)]);
  else checks.focusFirst(from);
}
const back = () => go(STEPS[Math.max(STEPS.indexOf(at()) - 1, 0)]);

// Fields that depend on others

function bounds() {
  const group = chosen("resource_group");
  if (!group) return; // a single group, whose bounds the server has written
  for (const element of wizard().querySelectorAll("[data-bound]")) {
    element.textContent = group.dataset[element.dataset.bound] ?? "";
  }
  for (const element of wizard().querySelectorAll("[data-why]")) {
    const why = group.dataset[`${element.dataset.why}Why`];
    element.textContent = why ? `${why}.` : "";
  }
  fieldNamed("resources.cpus").max = group.dataset.cpus;
  gpusOf(group);
}

// Shows the GPUs of the chosen resource group; keeps the chosen amount if it is offered there.
/** @param {PageElement} group */
function gpusOf(group) {
  const menu = fieldNamed("gpu");
  if (!menu) return;
  const before = menu.selectedOptions[0];
  for (const option of menu.querySelectorAll("[data-groups]")) {
    option.hidden = option.disabled = !option.dataset.groups.split("|").includes(group.value);
  }
  const open = choices(menu);
  for (const part of menu.querySelectorAll("optgroup")) {
    part.hidden = part.disabled = !open.some((option) => option.parentElement === part);
  }
  if (before.disabled) {
    const amount = (/** @type {PageElement} */ option) => option.value.split("/").pop();
    menu.value = (open.find((option) => amount(option) === amount(before)) ?? open[0]).value;
  }
  wizard().querySelector("[data-gpu-field]").hidden = open.length < 2;
  wizard().querySelector("[data-gpu-bound]").textContent = group.dataset.gpu ?? "";
}

const choices = (/** @type {PageElement} */ menu) => [...menu.options].filter((option) => !option.disabled);

function gpuWords() {
  const chosen = fieldNamed("gpu")?.selectedOptions[0];
  if (!chosen) return "";
  const line = wizard().querySelector("[data-gpu-about]");
  line.textContent = chosen.dataset.about ? `${chosen.dataset.about} · ` : "";
  return chosen.value ? `${chosen.value.split("/").pop()} fGPU` : "";
}

// In the user's home directory, nothing is lost without a folder.
const ownHome = () => "ownHome" in wizard().dataset;

function summary() {
  const template = chosen("template");
  const cores = fieldNamed("resources.cpus").value;
  const gpu = gpuWords();
  const size = template?.value
    ? template.dataset.title
    : [`${cores} ${cores === "1" ? "core" : "cores"}`, fieldNamed("resources.memory").value, gpu]
      .filter(Boolean).join(", ");
  const folders = [...wizard().querySelectorAll("[name=mount]:checked")].map((box) => box.value);
  const count = Number(fieldNamed("count").value) > 1 ? `${fieldNamed("count").value} × ` : "";
  const parts = [count + (chosen("image")?.dataset.title ?? ""), size,
    folders.join(", ") || (ownHome() ? "" : "no folder")];
  wizard().querySelector("[data-so-far]").textContent = parts.filter(Boolean).join(" · ");
}

/** @param {string} name @param {number} direction */
function steppedSize(name, direction) {
  const memory = megabytes(fieldNamed("resources.memory").value) || 1024;
  const mb = megabytes(fieldNamed(name).value);
  if (!mb) return written(name === "resources.memory" ? memory : Math.floor(memory / 2));
  const bound = megabytes(wizard().querySelector("[data-bound=memory]")?.textContent);
  return written(stepped(mb, direction, name === "resources.memory" ? bound : memory));
}

// The + and − buttons: numbers change by one, sizes by 256 MB, 512 MB or 1 GB.
/** @param {string} name @param {number} direction */
function change(name, direction) {
  const field = fieldNamed(name);
  if (field.type === "select-one") {
    const open = choices(field);
    const index = open.indexOf(field.selectedOptions[0]) + direction;
    field.value = open[Math.min(Math.max(index, 0), open.length - 1)].value;
  } else if (field.type === "number") {
    const most = field.max ? Number(field.max) : Infinity;
    const from = field.value || (direction > 0 ? "0" : "2");
    field.value = String(Math.min(most, Math.max(1, Number(from) + direction)));
    if (name === "count" && direction > 0 && from === "0") field.value = String(Math.min(most, 2));
  } else {
    field.value = steppedSize(name, direction);
  }
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

// No folder is mounted

ask.querySelector("[data-bare]").addEventListener("click", () => {
  agreed = true;
  if (ask.querySelector("[data-never-ask]").checked) neverAsk();
  ask.close();
  wizard().requestSubmit();
});
ask.querySelector("[data-choose]").addEventListener("click", () => {
  ask.close();
  go("folders");
});

// Events, all on the document, since responses replace the form

document.addEventListener("click", (event) => {
  const hit = (/** @type {string} */ name) => event.target.closest?.(`[data-${name}]`);
  const link = hit("go");
  if (link) {
    event.preventDefault();
    go(link.dataset.go, link.dataset.field);
  } else if (hit("next")) next();
  else if (hit("back")) back();
  else if (hit("more")) change(hit("more").dataset.more, 1);
  else if (hit("less")) change(hit("less").dataset.less, -1);
  if (!event.target.closest?.(".info")) closeInfo();
});

function closeInfo() {
  document.querySelector("details.info[open]")?.removeAttribute("open");
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeInfo();
  if (event.key !== "Enter" || !event.target.matches?.("#wizard input")) return;
  if (event.target.name === "folder") press(event, "[data-make-folder]");
  else if (event.target.name === "preset") press(event, "[data-keep]");
  else if (at() !== "review") {
    event.preventDefault();
    next();
  }
});

/** @param {PageEvent<KeyboardEvent>} event @param {string} button */
function press(event, button) {
  event.preventDefault();
  wizard().querySelector(button).click();
}

document.addEventListener("input", (event) => {
  if (!event.target.closest?.("#wizard")) return;
  if (event.target.name === "resource_group") bounds();
  if (event.target.name === "read_only" && event.target.checked) {
    event.target.closest(".folder").querySelector("[name=mount]").checked = true;
  }
  summary();
});

document.addEventListener("htmx:confirm", (event) => {
  if (event.detail.elt !== wizard()) return;
  if (agreed) return;
  event.preventDefault();
  launch(event.detail.issueRequest);
});

// Errors are shown before the question about folders.
/** @param {(skipConfirmation?: boolean) => void} send */
async function launch(send) {
  const step = await checks.firstWrong();
  if (step) {
    go(step);
    checks.focusFirst(step);
  } else if (ownHome() || mayGoWithout() || chosen("mount")) send(true);
  else ask.showModal();
}
document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.elt === wizard()) event.detail.parameters.confirmed = "yes";
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, target } = event.detail;
  if (target.id === "folder-list") {
    ticked = new Map([...target.querySelectorAll("[type=checkbox]:not(:disabled)")].map(
      (box) => [`${box.name} ${box.value}`, box.checked]));
  }
  // A rejected launch returns the form with its errors, which must be shown despite the status.
  if (xhr.getResponseHeader("X-Slipway-Panel") !== "launch") return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});
document.addEventListener("htmx:afterSwap", () => {
  if (!ticked || !wizard()) return;
  for (const box of wizard().querySelectorAll("#folder-list [type=checkbox]:not(:disabled)")) {
    box.checked = ticked.get(`${box.name} ${box.value}`) ?? box.checked;
  }
  ticked = null;
  summary();
});
document.addEventListener("htmx:afterSettle", () => times.refresh());

/** @param {boolean} lost @param {boolean} refused */
function trouble(lost, refused) {
  wizard().querySelector("[data-lost]").hidden = !lost;
  wizard().querySelector("[data-refused]").hidden = !refused;
  if (lost || refused) scrollTo({ top: 0 });
}
const launching = (/** @type {(detail: HtmxDetail) => void} */ then) => (/** @type {HtmxEvent} */ event) => {
  if (event.detail.elt === wizard()) then(event.detail);
};
document.addEventListener("htmx:beforeRequest", launching(() => trouble(false, false)));
document.addEventListener("htmx:sendError", launching(() => trouble(true, false)));
document.addEventListener("htmx:timeout", launching(() => trouble(true, false)));
document.addEventListener("htmx:responseError", launching(({ xhr }) => {
  const away = xhr.status > 500; // from HAProxy: the portal is unavailable
  trouble(away, !away);
}));

// The user has not logged in again: nothing was sent, and the entered values remain.
document.addEventListener("slipway:refused", (event) => {
  if (event.detail.elt === wizard()) trouble(false, true);
  const waiting = document.querySelector("#review-text [data-loading]");
  if (waiting) waiting.textContent = "Log in to see the review: reload this page, or press Next again.";
});

addEventListener("popstate", () => {
  const step = stepOfUrl();
  show(STEPS.includes(step) ? step : STEPS[0]);
});

// A step of the list that was clicked before this script ran is named with the element's id.
const stepOfUrl = () => location.hash.slice(1).replace(/^step-/, "");

function prepare() {
  const form = wizard();
  if (!form || form.classList.contains("stepped")) return;
  const hasErrors = form.querySelector(".steps .wrong, [role=alert]:not([hidden])");
  const requested = stepOfUrl();
  form.classList.add("stepped");
  // htmx inserts the content of <noscript> as elements, which would be submitted beside the dialog's field.
  for (const field of form.querySelectorAll("noscript [name]")) field.remove();
  for (const button of form.querySelectorAll("[data-more], [data-less]")) button.hidden = false;
  bounds();
  const first = form.dataset.first;
  const step = !hasErrors && first === STEPS[0] && STEPS.includes(requested) ? requested : first;
  history.replaceState({ step }, "", `#${step}`);
  show(step, Boolean(hasErrors));
  form.querySelector(`[data-step=${step}] [aria-invalid=true]`)?.focus();
}

// Always from the top: the browser's own position belongs to a page with other steps.
history.scrollRestoration = "manual";
prepare();
document.addEventListener("htmx:afterSettle", prepare);
