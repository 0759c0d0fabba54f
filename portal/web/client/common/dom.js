// Elements, forms and errors.
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

/** The element that has the keyboard's focus. @returns {PageElement | null} */
export const focused = () => /** @type {PageElement | null} */ (document.activeElement);

/** @param {HTMLElement} form @param {HTMLElement | null} [submitter] */
export const formData = (form, submitter) => new FormData(/** @type {HTMLFormElement} */ (form), submitter);

/** The same as texts: of fields that are no files. @param {HTMLElement} form */
export const textFields = (form) => [...formData(form)].map(([name, value]) => [name, String(value)]);

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
