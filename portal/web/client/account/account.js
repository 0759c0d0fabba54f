// The page works without this; it adds a copy button for a new token, and Escape for open menus.
// Browsers offer the clipboard only to pages from https or localhost.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.querySelector(".bi").className = "bi bi-check-lg";
    document.getElementById("announce").textContent = "Copied.";
  });
}

document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && document.querySelector(".take-all[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});
document.querySelector("[aria-invalid=true]")?.focus();
