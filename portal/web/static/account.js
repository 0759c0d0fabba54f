// The page works without this; it copies a new token, and closes what was opened by mistake.
(() => {
  // Browsers let pages write to the clipboard over https and on this very computer only.
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
})();
