// Runs before the first paint, so that neither wrong colours nor hidden announcements flash.
import { hidden } from "./hidden.js";
import "./theme.js";

const marks = hidden();
if (marks.length) {
  const rules = new CSSStyleSheet();
  rules.replaceSync(`${marks.map((mark) => `[data-banner="${CSS.escape(mark)}"]`).join()} { display: none; }`);
  document.adoptedStyleSheets.push(rules);
}
