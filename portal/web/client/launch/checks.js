// Shows errors beside the wizard's fields, checked by the server: when a field is left, before the next step,
// and before a launch.
import { focused, formData } from "../common/dom.js";
import * as relogin from "../common/relogin.js";

const touched = new Set();
const local = new Map(); // errors found by this page alone: values that were not stored over a reload
let latest = 0;

const wizard = () => document.getElementById("wizard");
/** The names of each step's fields. @returns {Record<string, string[]>} */
const fieldsOf = () => JSON.parse(wizard().dataset.fields);
const fieldNamed = (/** @type {string} */ name) => wizard().querySelector(`[name="${name}"]`);
const slug = (/** @type {string} */ name) => name.replaceAll(".", "-");
const part = (/** @type {string} */ name) => wizard().querySelector(`[data-step="${stepOf(name)}"]`);
const stepOf = (/** @type {string} */ name) => Object.entries(fieldsOf()).find(([, names]) => names.includes(name))?.[0];

// The fields of the page behind a field of the request.
/** @param {string} name */
function inputs(name) {
  if (name === "environment" || name === "version") return wizard().querySelectorAll("[name=image]");
  if (name === "mounts") return wizard().querySelectorAll("[name=mount]");
  const field = document.getElementById(`field-${slug(name)}`);
  return field ? [field] : wizard().querySelectorAll(`[name="${name}"]`);
}

// The paragraph for a field's error; a step's own lines have it at the top of the step.
/** @param {string} name */
function line(name) {
  const id = `error-${slug(name)}`;
  const existing = document.getElementById(id);
  if (existing) return existing;
  const node = /** @type {PageElement} */ (document.getElementById("field-error").content.firstElementChild?.cloneNode(true));
  node.id = id;
  part(name).querySelector("h2, .lead:last-of-type").after(node);
  return node;
}

/** @param {string} name @param {string} text */
function mark(name, text) {
  const error = `error-${slug(name)}`;
  if (!text && !document.getElementById(error)) return;
  const paragraph = line(name);
  paragraph.hidden = !text;
  (paragraph.querySelector("span") ?? paragraph).textContent = text ?? "";
  for (const input of inputs(name)) {
    const others = (input.getAttribute("aria-describedby") ?? "").split(" ").filter(
      (id) => id && id !== error);
    input.setAttribute("aria-describedby", (text ? [error, ...others] : others).join(" "));
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
}

function markSteps() {
  for (const link of wizard().querySelectorAll(".steps [data-go]")) {
    const error = wizard().querySelector(
      `[data-step="${link.dataset.go}"] .field-error:not([hidden], #error-preset)`);
    link.parentElement.classList.toggle("wrong", Boolean(error));
  }
}

/** @param {Record<string, string>} errors @param {Iterable<string>} names */
function show(errors, names) {
  for (const name of names) mark(name, errors[name]);
  markSteps();
}

// The server's errors by field; null if it cannot be reached, which must not block the user.
async function ask() {
  latest += 1;
  const number = latest;
  try {
    const answer = await relogin.post("/sessions/new/check", () => formData(wizard()));
    if (!answer.ok) return null;
    const result = await answer.json();
    if (number !== latest) return null;
    for (const [name, value] of Object.entries(result.values)) rewrite(name, value);
    return { ...result.errors, ...Object.fromEntries(local) };
  } catch {
    return null;
  }
}

// Writes the unit that the server added to a bare number.
/** @param {string} name @param {string} value */
function rewrite(name, value) {
  const field = wizard().querySelector(`[name="${name}"]`);
  if (!field || field === focused() || field.value === value || !value) return;
  if (!value.startsWith(field.value.trim())) return; // typed on meanwhile
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** @param {string} name */
async function left(name) {
  touched.add(name === "gpu" ? "resources.fgpu" : name);
  const errors = await ask();
  if (errors) show(errors, touched);
}

// Repeats the checks after a part of the form was replaced.
export async function again() {
  const errors = touched.size ? await ask() : null;
  if (errors) show(errors, touched);
  else markSteps();
}

/** @param {string} name */
export async function step(name) {
  const names = fieldsOf()[name];
  for (const field of names) touched.add(field);
  const errors = await ask();
  if (!errors) return true;
  show(errors, touched);
  return !names.some((field) => errors[field]);
}

export async function firstWrong() {
  const all = Object.values(fieldsOf()).flat();
  const errors = await ask();
  if (!errors) return null;
  for (const field of all) touched.add(field);
  show(errors, all);
  return Object.entries(fieldsOf()).find(([, names]) => names.some((name) => errors[name]))?.[0];
}

/** @param {string} name */
export function focusFirst(name) {
  const section = wizard().querySelector(`[data-step="${name}"]`);
  const invalid = [...section.querySelectorAll("[aria-invalid=true]")].find((input) => input.checkVisibility());
  const chosen = invalid?.type === "radio" && section.querySelector("[aria-invalid=true]:checked");
  (chosen || invalid || section.querySelector("h2")).focus();
  (chosen || invalid)?.scrollIntoView({ block: "nearest" });
}

// Focuses a field with an error, or the first one of its step if it has no element.
/** @param {string} field @param {string} step */
export function focus(field, step) {
  const element = document.getElementById(`field-${field}`);
  if (!element) focusFirst(step);
  else {
    element.focus();
    element.scrollIntoView({ block: "nearest" });
  }
}

// Sets an error that this page alone has found; an empty text removes it.
/** @param {string} name @param {string} text */
export function set(name, text) {
  if (text) local.set(name, text);
  else local.delete(name);
  touched.add(name);
  mark(name, text);
  markSteps();
}

document.addEventListener("change", (event) => {
  const { name, form } = event.target;
  if (!name || form !== wizard() || event.target.type === "checkbox") return;
  // The name of an own image is not checked before it is entered.
  if (name === "image" && event.target.value === "own" && !fieldNamed("own_image").value) return;
  if (name === "own_image") left("image");
  else if (stepOf(name) || name === "gpu") left(name);
});
// The review's errors are marked at their fields as well.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "review-text") return;
  const pairs = [...event.detail.target.querySelectorAll("[data-error]")].map(
    (item) => [item.dataset.error, item.querySelector("span").textContent]);
  const errors = Object.fromEntries(pairs.map(
    ([name, text]) => [name, text.charAt(0).toUpperCase() + text.slice(1)]));
  for (const [name] of pairs) touched.add(name);
  show({ ...errors, ...Object.fromEntries(local) }, touched);
});
