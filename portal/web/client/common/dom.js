// Elements, forms and errors.
/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {string} [className] @param {string} [text]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
/** @param {string} name */
export function icon(name) {
  const node = element("i", `bi bi-${name}`);
  node.setAttribute("aria-hidden", "true");
  return node;
}

/** The element that has the keyboard's focus. @returns {PageElement | null} */
export const focused = () => /** @type {PageElement | null} */ (document.activeElement);

/** @param {HTMLElement} form @param {HTMLElement | null} [submitter] */
export const formData = (form, submitter) => new FormData(/** @type {HTMLFormElement} */ (form), submitter);

/** The fields of a form as texts, for forms without files. @param {HTMLElement} form */
export const textFields = (form) => [...formData(form)].map(([name, value]) => [name, String(value)]);

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
