// Asks before a preset without a folder is launched, like the wizard; without this script, a page asks.
import { mayGoWithout, neverAsk } from "../launch/never_ask.js";

function start() {
  const ask = document.getElementById("no-folder");
  /** @type {PageElement} */
  let asking; // the button of the preset
  if (!ask) return;

  /** @param {PageElement & HTMLFormElement} form */
  function agree(form) {
    const agreed = document.createElement("input");
    Object.assign(agreed, { type: "hidden", name: "confirmed", value: "yes" });
    form.append(agreed);
    setTimeout(() => agreed.remove()); // it is for this launch only
  }

  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.matches("[data-no-folder]") || button.form.elements.confirmed) return;
    if (mayGoWithout()) {
      agree(button.form); // and it is sent: a form cannot be submitted anew in this event
      return;
    }
    event.preventDefault();
    asking = button;
    button.closest("[popover]")?.hidePopover();
    ask.showModal();
  });

  ask.querySelector("[data-bare]").addEventListener("click", () => {
    if (ask.querySelector("[data-never-ask]").checked) neverAsk();
    ask.close();
    agree(asking.form);
    asking.form.requestSubmit(asking);
  });
  ask.querySelector("[data-choose]").addEventListener("click", () => {
    location.assign(asking.dataset.noFolder);
  });
}
start();
