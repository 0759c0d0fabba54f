// The dialog for environment variables. Saved values are in a hidden field of the launch panel, so
// they are submitted with it and come back with it after an error.
import * as relogin from "../common/relogin.js";
import { assignments } from "./assignments.js";
import * as checks from "./checks.js";

const dialog = document.getElementById("env");
const ask = document.getElementById("env-ask");
const rows = dialog.querySelector("[data-env-rows]");
const problem = dialog.querySelector("[data-env-problem]");
const help = dialog.querySelector("[data-env-help]");
const SECRET = new RegExp(dialog.dataset.secret, "i");
let before = "";
/** @type {string[]} */
let missing = []; // names whose values were not stored over a reload

const field = () => document.querySelector("[data-env]");
const part = (/** @type {PageElement} */ row, /** @type {string} */ name) => row.querySelector(`[data-env-${name}]`);

export function stored() {
  try {
    return Object.entries(JSON.parse(field().value || "{}"));
  } catch {
    return [];
  }
}

function label() {
  [...rows.children].forEach((row, index) => {
    const number = index + 1;
    row.setAttribute("aria-label", `Variable ${number}`);
    part(row, "name").setAttribute("aria-label", `Name ${number}`);
    part(row, "value").setAttribute("aria-label", `Value ${number}`);
    for (const [name, word] of [["remove", "Remove"], ["show", "Show the value of"]]) {
      part(row, name).setAttribute("aria-label", `${word} variable ${number}`);
      part(row, name).title = word.split(" ")[0];
    }
    part(row, "wrong").id = `env-wrong-${number}`;
    part(row, "hint").id = `env-hint-${number}`;
    part(row, "value").setAttribute("aria-describedby", `env-hint-${number}`);
    part(row, "name").setAttribute("aria-describedby", `env-wrong-${number}`);
  });
}

// Hides values that are probably secrets, and explains the effect of a $.
/** @param {PageElement} row */
function dress(row) {
  const [name, value] = [part(row, "name").value, part(row, "value")];
  const secret = SECRET.test(name);
  const show = part(row, "show");
  show.hidden = !secret;
  if (!secret) show.setAttribute("aria-pressed", "false");
  value.type = secret && show.getAttribute("aria-pressed") === "false" ? "password" : "text";
  const reference = /\$\{?[A-Za-z_]\w*\}?/.exec(value.value)?.[0];
  const hint = part(row, "hint");
  hint.hidden = !reference || secret;
  if (hint.hidden) hint.textContent = "";
  else if (name.trim() === "PATH" && /PATH/.test(reference ?? "")) {
    hint.textContent = `PATH is put in front of the image's own: leave out ${reference}, which is taken literally.`;
  } else hint.textContent = `${reference} is taken literally; nothing is put in its place.`;
}

/** @param {PageElement | null} [after] */
function add(name = "", value = "", after = null) {
  const line = document.getElementById("env-line").content.cloneNode(true);
  if (after) after.after(line);
  else rows.append(line);
  const row = after ? after.nextElementSibling : rows.lastElementChild;
  part(row, "name").value = name;
  part(row, "value").value = value;
  dress(row);
  label();
  return row;
}

function clear() {
  rows.replaceChildren();
  problem.textContent = "";
  return part(add(), "name");
}

/** @param {PageElement} row */
function remove(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  problem.textContent = "";
  part(next ?? add(), "name").focus();
  label();
}

/** @param {PageEvent<ClipboardEvent>} event */
function paste(event) {
  const text = event.clipboardData?.getData("text") ?? "";
  const several = text.trim().includes("\n");
  const assigned = /^(export\s+)?[A-Za-z_]\w*=/;
  const name = event.target.matches("[data-env-name]");
  if (!several && !(name && assigned.test(text.trim()))) return;
  if (!name && !assigned.test(text.trim())) return; // a value that happens to have several lines
  event.preventDefault();
  let row = event.target.closest(".env-row");
  const empty = !part(row, "name").value.trim() && !part(row, "value").value;
  for (const [name, value] of assignments(text)) row = add(name, value, row);
  if (empty) event.target.closest(".env-row").remove();
  label();
  part(row, "value").focus();
}

const typed = () =>
  [...rows.children].map((row) => [part(row, "name").value.trim(), part(row, "value").value]);
const state = () => JSON.stringify(typed().filter(([name, value]) => name || value));

export function open() {
  rows.replaceChildren();
  for (const [name, value] of stored()) add(name, value);
  for (const name of missing) add(name);
  if (!rows.children.length) add();
  problem.textContent = "";
  showHelp(false);
  before = state();
  dialog.showModal();
  part(rows.firstElementChild, "name").focus();
  if (stored().length || missing.length) check();
}

function close() {
  if (state() === before) dialog.close();
  else ask.showModal();
}

/** @param {PageElement} row @param {string} text */
function markRow(row, text, at = "name") {
  const error = part(row, "wrong");
  error.textContent = text ?? "";
  error.hidden = !text;
  for (const name of ["name", "value"]) {
    if (text && name === at) part(row, name).setAttribute("aria-invalid", "true");
    else part(row, name).removeAttribute("aria-invalid");
  }
}

// Marks incomplete and duplicate lines; the server checks names and values.
function incomplete() {
  const names = new Set();
  let invalid = false;
  for (const row of rows.children) {
    const [name, value] = [part(row, "name").value.trim(), part(row, "value").value];
    if (name && !value) markRow(row, `Enter a value for ${name}, or remove the line.`, "value");
    else if (!name && value) markRow(row, "Enter a name for this value, or remove the line.");
    else if (name && names.has(name)) markRow(row, `${name} occurs twice.`);
    else {
      markRow(row, "");
      names.add(name);
      continue;
    }
    invalid = true;
  }
  return invalid;
}

async function refused() {
  const body = () => {
    const form = new FormData();
    form.set("csrf_token", document.querySelector("[name=csrf_token]").value);
    form.set("env", JSON.stringify(Object.fromEntries(typed().filter(([name]) => name))));
    return form;
  };
  /** @type {{ errors?: Record<string, string>, variables?: Record<string, string> }} */
  let result = {};
  try {
    const answer = await relogin.post("/sessions/new/check", body);
    if (answer.ok) result = await answer.json();
  } catch {
    return false; // the launch checks them again
  }
  const texts = { ...result.variables };
  for (const row of rows.children) {
    const name = part(row, "name").value.trim();
    if (texts[name]) markRow(row, texts[name].charAt(0).toUpperCase() + texts[name].slice(1));
    delete texts[name];
  }
  const others = Object.keys(result.variables ?? {}).length ? Object.values(texts) : [result.errors?.env];
  problem.textContent = others.filter(Boolean).join(" ");
  return Boolean(result.errors?.env);
}

// Whether the lines may be saved; else focuses the first invalid one.
async function check() {
  const invalid = incomplete() || (await refused());
  if (invalid) rows.querySelector("[aria-invalid]")?.focus();
  return !invalid;
}

async function save() {
  if (!(await check()) || !dialog.open) return;
  const pairs = typed().filter(([name]) => name);
  field().value = pairs.length ? JSON.stringify(Object.fromEntries(pairs)) : "";
  missing = [];
  checks.set("env", "");
  summary(pairs.map(([name]) => name));
  dialog.close();
  field().dispatchEvent(new Event("input", { bubbles: true }));
}

/** @param {string[]} names */
function summary(names) {
  document.querySelector("[data-env-summary]").textContent = names.join(", ") || "none set";
}

// After a reload: shows the variables, and asks for the values that were not stored.
/** @param {string[]} names @param {string[]} lost */
export function restore(names, lost) {
  missing = lost;
  summary([...names, ...lost]);
  if (!lost.length) return;
  checks.set("env", `Set ${lost.join(", ")} again: values that look secret are not kept when a page is reloaded.`);
}

/** @param {boolean} shown */
function showHelp(shown) {
  document.getElementById("env-help").hidden = !shown;
  help.setAttribute("aria-expanded", String(shown));
}

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-env-open]")) open();
});
dialog.addEventListener("click", (event) => {
  const pressed = (/** @type {string} */ name) => event.target.closest(`[data-env-${name}]`);
  if (pressed("add")) part(add(), "name").focus();
  else if (pressed("show")) {
    const shown = pressed("show").getAttribute("aria-pressed") === "true";
    pressed("show").setAttribute("aria-pressed", String(!shown));
    dress(event.target.closest(".env-row"));
  }
  else if (pressed("remove")) remove(event.target.closest(".env-row"));
  else if (pressed("clear")) clear().focus();
  else if (pressed("help")) showHelp(help.getAttribute("aria-expanded") !== "true");
  else if (pressed("close")) close();
});
// Not "click": a drag that starts in a field and ends outside must not close the dialog.
dialog.addEventListener("pointerdown", (event) => {
  if (event.target === dialog) close();
});
dialog.addEventListener("paste", (event) => {
  if (event.target.matches("[data-env-name], [data-env-value]")) paste(event);
});
dialog.addEventListener("input", (event) => {
  const row = event.target.closest(".env-row");
  if (!row) return;
  markRow(row, "");
  dress(row);
});
dialog.addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
dialog.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.preventDefault();
  close();
});
dialog.addEventListener("cancel", (event) => {
  if (event.target !== dialog) return;
  event.preventDefault();
  close();
});
ask.querySelector("[data-env-stay]").addEventListener("click", () => ask.close());
ask.querySelector("[data-env-discard]").addEventListener("click", () => {
  ask.close();
  dialog.close();
});

export const secret = (/** @type {string} */ name) => SECRET.test(name);
