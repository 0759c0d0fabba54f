// Errors beside the wizard's fields, found by the server's rules: when a field is left, before the
// next step, and before a launch.
import { focused, formData } from "../common/dom.js";
import * as relogin from "../common/relogin.js";

const touched = new Set();
const local = new Map(); // errors that only this page knows: what was not kept over a reload
let latest = 0;

const wizard = () => document.getElementById("wizard");
/** The names of each step's fields. @returns {Record<string, string[]>} */
const fieldsOf = () => JSON.parse(wizard().dataset.fields);
const named = (/** @type {string} */ name) => wizard().querySelector(`[name="${name}"]`);
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
  const found = document.getElementById(id);
  if (found) return found;
  const made = /** @type {PageElement} */ (document.getElementById("field-error").content.firstElementChild?.cloneNode(true));
  made.id = id;
  part(name).querySelector("h2, .lead:last-of-type").after(made);
  return made;
}

/** @param {string} name @param {string} text */
function mark(name, text) {
  const error = `error-${slug(name)}`;
  if (!text && !document.getElementById(error)) return;
  const place = line(name);
  place.hidden = !text;
  (place.querySelector("span") ?? place).textContent = text ?? "";
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
    const wrong = wizard().querySelector(
      `[data-step="${link.dataset.go}"] .field-error:not([hidden], #error-preset)`);
    link.parentElement.classList.toggle("wrong", Boolean(wrong));
  }
}

/** @param {Record<string, string>} errors @param {Iterable<string>} names */
function show(errors, names) {
  for (const name of names) mark(name, errors[name]);
  markSteps();
}

// The server's errors by field; null when it cannot be asked, which must not hold anybody up.
async function ask() {
  latest += 1;
  const number = latest;
  try {
    const answer = await relogin.post("/sessions/new/check", () => formData(wizard()));
    if (!answer.ok) return null;
    const found = await answer.json();
    if (number !== latest) return null;
    for (const [name, value] of Object.entries(found.values)) rewrite(name, value);
    return { ...found.errors, ...Object.fromEntries(local) };
  } catch {
    return null;
  }
}

// A bare number got its unit.
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

// After a part of the form was written anew.
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
  const place = wizard().querySelector(`[data-step="${name}"]`);
  const wrong = [...place.querySelectorAll("[aria-invalid=true]")].find((input) => input.checkVisibility());
  const chosen = wrong?.type === "radio" && place.querySelector("[aria-invalid=true]:checked");
  (chosen || wrong || place.querySelector("h2")).focus();
  (chosen || wrong)?.scrollIntoView({ block: "nearest" });
}

// A field with an error, or the first one of its step if it has no element of its own.
/** @param {string} field @param {string} step */
export function focus(field, step) {
  const found = document.getElementById(`field-${field}`);
  if (!found) focusFirst(step);
  else {
    found.focus();
    found.scrollIntoView({ block: "nearest" });
  }
}

// What only this page knows is wrong; without a text it is mended.
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
  // The name of one's own image: not wrong before anything was entered.
  if (name === "image" && event.target.value === "own" && !named("own_image").value) return;
  if (name === "own_image") left("image");
  else if (stepOf(name) || name === "gpu") left(name);
});
// The review's errors are marked at their fields as well.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "review-text") return;
  const found = [...event.detail.target.querySelectorAll("[data-error]")].map(
    (item) => [item.dataset.error, item.querySelector("span").textContent]);
  const errors = Object.fromEntries(found.map(
    ([name, text]) => [name, text.charAt(0).toUpperCase() + text.slice(1)]));
  for (const [name] of found) touched.add(name);
  show({ ...errors, ...Object.fromEntries(local) }, touched);
});
