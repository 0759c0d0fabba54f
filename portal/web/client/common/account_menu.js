// The account menu opens without this; it adds Escape, the arrow keys, and closing by a click elsewhere.
import { focused } from "./dom.js";
import { removeDrafts } from "./drafts.js";

function start() {
  const menu = document.getElementById("account-menu");
  if (!menu) return;
  const items = () => [...menu.querySelectorAll("nav a, nav button")];

  /** @param {boolean} focus */
  function close(focus) {
    if (!menu.open) return;
    menu.open = false;
    if (focus) menu.querySelector("summary").focus();
  }

  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) close(false);
  });
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !menu.contains(relatedTarget)) close(false);
  });
  // Drafts end with a log-out (draft.js), but not when the login expires.
  menu.querySelector("[action='/logout']").addEventListener("submit", removeDrafts);
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.open) {
      event.stopPropagation();
      close(true);
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    menu.open = true;
    const all = items();
    const index = items().indexOf(/** @type {PageElement} */ (focused()));
    all[index < 0 && step < 0 ? all.length - 1 : (index + step + all.length) % all.length].focus();
  });
}
start();
