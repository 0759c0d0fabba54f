// The "morph" swap of htmx: elements that are the same stay, with their focus and state.
import htmx from "htmx.org";
import { Idiomorph } from "idiomorph/dist/idiomorph.esm.js";

/** @param {string} style */
const morphStyle = (style) => (style === "morph:innerHTML" ? "innerHTML" : "outerHTML");

htmx.defineExtension("morph", {
  isInlineSwap: (style) => style === "morph" || style === "morph:outerHTML",
  handleSwap: (style, target, fragment) => style.startsWith("morph")
    && Idiomorph.morph(target, /** @type {DocumentFragment} */ (fragment).children, { morphStyle: morphStyle(style) }),
});
