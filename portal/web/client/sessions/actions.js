// The list's small buttons (extend, keep, release); keeps the last lines of logs open across updates.
import htmx from "htmx.org";
import { formData, messageOf } from "../common/dom.js";
import * as times from "../common/times.js";

function start() {
  const form = document.getElementById("session-actions");
  const problem = document.getElementById("session-actions-problem");
  const notice = document.getElementById("session-actions-done");
  const rows = document.getElementById("rows");
  if (!form || !rows) return;

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = /** @type {PageElement} */ (event.submitter);
    const body = formData(form, button); // before: a disabled button's value is left out
    button.disabled = true; // a second click would extend twice
    button.closest("[popover]")?.hidePopover();
    problem.hidden = notice.hidden = true;
    try {
      const response = await fetch(button.formAction, {
        method: "POST", body, headers: { "HX-Request": "true" },
      });
      const text = await response.text();
      if (!response.ok) throw new Error(text);
      notice.innerHTML = text; // our own template, or nothing
      notice.hidden = !text;
      times.refresh();
    } catch (error) {
      problem.textContent = error instanceof TypeError ? "The portal does not answer. Try again." : messageOf(error);
      problem.hidden = false;
    }
    button.disabled = false;
    if (problem.hidden && button.id.startsWith("dismiss-")) dismissed = { id: button.id, place: dismissals().indexOf(button) };
    htmx.trigger(rows, "refresh");
  });

  // Moves the focus from a dismissed notice to the next one, else to the current tab.
  /** @type {{ id: string, place: number } | null} */
  let dismissed = null;
  const dismissals = () => [...rows.querySelectorAll("[data-dismiss]")];
  function keepFocus() {
    if (!dismissed || document.getElementById(dismissed.id)) return;
    const left = dismissals();
    const next = left[Math.min(Math.max(dismissed.place, 0), left.length - 1)];
    (next ?? document.querySelector("#tabs [aria-current]"))?.focus();
    dismissed = null;
  }

  const open = new Set();
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches?.(".last-lines")) return;
    if (target.open) open.add(target.id);
    else open.delete(target.id);
  }, true);
  // The server does not know which details are open: its new rows would close them.
  document.addEventListener("htmx:beforeSwap", () => {
    for (const details of rows.querySelectorAll(".last-lines[open]")) open.add(details.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    keepFocus();
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  });
}
start();
