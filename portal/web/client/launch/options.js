// Account, QOS, reservation and resource group restrict the other choices: when one of them changes, the server
// renders the resources step again, with the entered values.
import htmx from "htmx.org";
import { focused, formData } from "../common/dom.js";
import * as relogin from "../common/relogin.js";
import * as checks from "./checks.js";

const wizard = () => document.getElementById("wizard");
const fieldset = () => document.getElementById("resource-fields");
const decides = (/** @type {PageElement} */ field) => field.matches?.("[data-decides], [name=resource_group]")
  && fieldset()?.querySelector("[data-slurm-options]");
let latest = 0;

async function renew() {
  latest += 1;
  const number = latest;
  const sent = formData(wizard());
  let text;
  try {
    const answer = await relogin.post("/sessions/new/choice", () => formData(wizard()));
    if (!answer.ok) return;
    text = await answer.text();
  } catch {
    return; // the choice is checked before the next step and at the launch
  }
  if (number === latest && wizard()) replace(text, sent);
}

/** @param {string} text @param {FormData} sent */
function replace(text, sent) {
  const active = focused();
  const id = fieldset().contains(active) ? active?.id ?? "" : "";
  const picked = active?.name === "resource_group" && fieldset().contains(active);
  const byHand = "byHand" in (fieldset().querySelector("[name=exclusive]")?.dataset ?? {});
  const typed = [...fieldset().querySelectorAll("input.form-control")].filter(
    (field) => field.value !== (sent.get(field.name) ?? "")).map((field) => [field.name, field.value]);
  fieldset().innerHTML = text;
  for (const button of fieldset().querySelectorAll("[data-more], [data-less], [data-shorter], [data-longer]")) {
    button.hidden = false;
  }
  for (const [name, value] of typed) {
    const field = fieldset().querySelector(`[name="${name}"]`);
    if (field) field.value = value;
  }
  const box = fieldset().querySelector("[name=exclusive]");
  if (box && byHand) box.dataset.byHand = "";
  htmx.process(fieldset());
  const group = fieldset().querySelector("[name=resource_group]:checked");
  if (picked) group?.focus();
  else if (id) document.getElementById(id)?.focus();
  // launch.js writes bounds, GPUs and the summary.
  (group ?? fieldset().querySelector("[name]")).dispatchEvent(new Event("input", { bubbles: true }));
  checks.again();
  document.getElementById("announce").textContent = fieldset().querySelector(".alert-line")?.textContent ?? "";
}

// A template sets the box for a whole node, unless the user has changed it.
/** @param {PageElement} template */
function wholeNode(template) {
  const box = fieldset()?.querySelector("[name=exclusive]");
  if (!box) return;
  fieldset().querySelector("[name=exclusive_of]").value = template.value;
  if (!("byHand" in box.dataset)) box.checked = "exclusive" in template.dataset;
}

document.addEventListener("change", (event) => {
  if (event.target.form === wizard() && event.target.name === "exclusive") event.target.dataset.byHand = "";
  if (event.target.form === wizard() && event.target.name === "template") wholeNode(event.target);
  if (event.target.form === wizard() && decides(event.target)) renew();
});
