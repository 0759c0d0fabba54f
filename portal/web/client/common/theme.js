// Colour scheme: the system's, or the one chosen with the button. Loaded before the first paint.
const KEY = "slipway-theme";
const ORDER = ["auto", "light", "dark"];
/** @type {Record<string, string>} */
const ICONS = { auto: "circle-half", light: "sun", dark: "moon-stars" };
/** @type {Record<string, string>} */
const WORDS = { auto: "as on this computer", light: "light", dark: "dark" };
const dark = matchMedia("(prefers-color-scheme: dark)");

function chosen() {
  try {
    const value = localStorage.getItem(KEY);
    return value && ORDER.includes(value) ? value : "auto";
  } catch {
    return "auto"; // storage may be blocked
  }
}

/** @param {string} choice */
function paint(choice) {
  const effective = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  document.documentElement.dataset.bsTheme = effective;
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    button.querySelector(".bi").className = `bi bi-${ICONS[choice]}`;
    const text = `Colours: ${WORDS[choice]}`;
    const label = button.querySelector("[data-theme-word]");
    if (label) {
      label.textContent = text;
    } else {
      button.title = text;
      button.setAttribute("aria-label", text);
    }
  }
}

paint(chosen());
dark.addEventListener("change", () => paint(chosen()));
document.addEventListener("DOMContentLoaded", () => paint(chosen()));
document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-theme-toggle]")) return;
  const next = ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length];
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage is blocked: it applies to this page only.
  }
  paint(next);
});
