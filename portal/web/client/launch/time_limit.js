// The wizard's time limit: formatted when its field is left, and proposed with the resource group or template
// until the user changes it.
import { minutes, stepped, written } from "./minutes.js";

const fieldNamed = (/** @type {string} */ name) => document.querySelector(`#wizard [name="${name}"]`);
const chosen = (/** @type {string} */ name) => document.querySelector(`#wizard [name="${name}"]:checked`);

/** @param {string} text */
function put(text) {
  const field = fieldNamed("time_limit");
  if (field.value === text) return;
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function leave() {
  const field = fieldNamed("time_limit");
  const number = minutes(field.value);
  if (!field.value.trim()) put(fieldNamed("time_proposed").value);
  else if (number >= 1) put(written(number));
}

function propose() {
  const proposed = fieldNamed("time_proposed");
  if (!proposed) return;
  const text = chosen("template")?.dataset.timeLimit
    || (chosen("resource_group") ? chosen("resource_group").dataset.defaultTime ?? "" : proposed.value);
  const untouched = [proposed.value, ""].includes(fieldNamed("time_limit").value.trim());
  proposed.value = text;
  fieldNamed("time_limit").placeholder = text || "no limit";
  if (untouched) put(text);
}

/** @param {number} direction */
function step(direction) {
  const number = minutes(fieldNamed("time_limit").value) || minutes(fieldNamed("time_proposed").value) || 60;
  const most = minutes(document.querySelector("#wizard [data-bound=time]")?.textContent) || Infinity;
  put(written(stepped(number, direction, most)));
}

document.addEventListener("focusout", ({ target }) => {
  if (target.name === "time_limit" && target === fieldNamed("time_limit")) leave();
});
document.addEventListener("keydown", ({ key, target }) => {
  if (key === "Enter" && target.name === "time_limit") leave();
}, true);
document.addEventListener("change", ({ target }) => {
  if (["resource_group", "template"].includes(target.name)) propose();
});
document.addEventListener("click", ({ target }) => {
  if (target.closest?.("[data-longer]")) step(1);
  else if (target.closest?.("[data-shorter]")) step(-1);
});

function prepare() {
  for (const button of document.querySelectorAll("#wizard [data-longer], #wizard [data-shorter]")) button.hidden = false;
}
document.addEventListener("htmx:afterSettle", prepare);
prepare();
