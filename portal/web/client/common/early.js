// Runs before the first paint, so that the page never flashes in the wrong colours, and announcements
// that were hidden never show for a moment.
import { hidden } from "./hidden.js";
import "./theme.js";

const marks = hidden();
if (marks.length) {
  const rules = new CSSStyleSheet();
  rules.replaceSync(`${marks.map((mark) => `[data-banner="${CSS.escape(mark)}"]`).join()} { display: none; }`);
  document.adoptedStyleSheets.push(rules);
}
