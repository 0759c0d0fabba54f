// Keeps a row's menu beside its button, above or below, where there is room.
// A rule in a separate style sheet: a style attribute would be lost at the next update.
const sheet = new CSSStyleSheet();
document.adoptedStyleSheets.push(sheet);

function placeMenu() {
  const menu = document.querySelector(".menu:popover-open");
  if (!menu) return;
  const button = document.querySelector(`[popovertarget="${menu.id}"]`).getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = button.bottom + 6 + height < innerHeight;
  const top = below ? button.bottom + 6 : Math.max(8, button.top - height - 6);
  const left = Math.max(12, Math.min(button.right - width, innerWidth - width - 12));
  sheet.replaceSync(`.menu:popover-open { top: ${top}px; left: ${left}px; }`);
}
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.(".menu") || event.newState !== "open") return;
  placeMenu();
  (event.target.querySelector("button, a") ?? event.target).focus({ preventScroll: true });
}, true);
addEventListener("scroll", placeMenu, { capture: true, passive: true });
addEventListener("resize", placeMenu);
document.addEventListener("htmx:afterSwap", placeMenu);
document.addEventListener("click", (event) => {
  event.target.closest?.(".menu-item")?.closest(".menu").hidePopover();
});
