// Elements made by scripts.
/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {string} [className] @param {string} [text]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
/** @param {string} name */
export function icon(name) {
  const made = element("i", `bi bi-${name}`);
  made.setAttribute("aria-hidden", "true");
  return made;
}
