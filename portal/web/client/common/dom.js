// Elements made by scripts.
export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
export function icon(name) {
  const made = element("i", `bi bi-${name}`);
  made.setAttribute("aria-hidden", "true");
  return made;
}
