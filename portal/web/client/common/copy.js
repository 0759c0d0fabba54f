// Buttons that copy the text before them, and say so in #announce.
const SECONDS = 2;

// Browsers offer the clipboard only to pages from https or localhost.
function show() {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.previousElementSibling.textContent);
  const announce = document.getElementById("announce");
  const icon = button.querySelector(".bi");
  icon.className = "bi bi-check-lg";
  announce.textContent = "Copied.";
  setTimeout(() => {
    icon.className = "bi bi-copy";
    announce.textContent = "";
  }, SECONDS * 1000);
});

document.addEventListener("htmx:afterSettle", show);
show();
