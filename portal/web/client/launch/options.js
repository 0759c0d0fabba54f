// Account, QOS, reservation and resource group decide what else may be chosen: when one of them
// changes, the server writes the resources' step anew, with what was entered.
import htmx from "htmx.org";
import { focused, formData } from "../common/dom.js";
import * as relogin from "../common/relogin.js";
import * as checks from "./checks.js";

const wizard = () => document.getElementById("wizard");
const place = () => document.getElementById("resource-fields");
const decides = (/** @type {PageElement} */ field) => field.matches?.("[data-decides], [name=resource_group]")
  && place()?.querySelector("[data-slurm-options]");
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
  const id = place().contains(active) ? active?.id ?? "" : "";
  const picked = active?.name === "resource_group" && place().contains(active);
  const byHand = "byHand" in (place().querySelector("[name=exclusive]")?.dataset ?? {});
  const typed = [...place().querySelectorAll("input.form-control")].filter(
    (field) => field.value !== (sent.get(field.name) ?? "")).map((field) => [field.name, field.value]);
  place().innerHTML = text;
  for (const button of place().querySelectorAll("[data-more], [data-less], [data-shorter], [data-longer]")) {
    button.hidden = false;
  }
  for (const [name, value] of typed) {
    const field = place().querySelector(`[name="${name}"]`);
    if (field) field.value = value;
  }
  const box = place().querySelector("[name=exclusive]");
  if (box && byHand) box.dataset.byHand = "";
  htmx.process(place());
  const group = place().querySelector("[name=resource_group]:checked");
  if (picked) group?.focus();
  else if (id) document.getElementById(id)?.focus();
  // launch.js writes bounds, GPUs and the summary.
  (group ?? place().querySelector("[name]")).dispatchEvent(new Event("input", { bubbles: true }));
  checks.again();
  document.getElementById("announce").textContent = place().querySelector(".alert-line")?.textContent ?? "";
}

// A template says whether it is for a whole node, unless the box was ticked or unticked by hand.
/** @param {PageElement} template */
function wholeNode(template) {
  const box = place()?.querySelector("[name=exclusive]");
  if (!box) return;
  place().querySelector("[name=exclusive_of]").value = template.value;
  if (!("byHand" in box.dataset)) box.checked = "exclusive" in template.dataset;
}

document.addEventListener("change", (event) => {
  if (event.target.form === wizard() && event.target.name === "exclusive") event.target.dataset.byHand = "";
  if (event.target.form === wizard() && event.target.name === "template") wholeNode(event.target);
  if (event.target.form === wizard() && decides(event.target)) renew();
});
