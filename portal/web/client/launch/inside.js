// The contents of an image in a dialog. Without this script, the links lead to a page with the same content.
import htmx from "htmx.org";

const dialog = document.getElementById("inside");
const body = document.getElementById("inside-body");
/** @type {PageElement | null} */
let from = null; // the link that opened it, which may have been replaced meanwhile

const put = (/** @type {string} */ name) => body.replaceChildren(document.getElementById(`inside-${name}`).content.cloneNode(true));

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-inside]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  from = link;
  put("loading");
  dialog.showModal();
  htmx.ajax("get", link.getAttribute("href") ?? "", { target: "#inside-body", swap: "innerHTML" });
});

dialog.querySelector("[data-inside-close]").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close(); // beside it
});
dialog.addEventListener("close", () => from?.focus());

for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    if (event.detail.target === body) put("failed");
  });
}
