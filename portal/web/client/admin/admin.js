// The administrators' pages work without this; it adds a dialog before deletion, and copy buttons.
// In a narrow window the parts scroll sideways: show the one that is open.
const parts = document.querySelector(".parts");
const open = parts?.querySelector("[aria-current]");
const centre = () => {
  if (open) parts.scrollLeft = open.offsetLeft - parts.offsetLeft - (parts.clientWidth - open.offsetWidth) / 2;
};
centre();
addEventListener("resize", centre);

const ask = document.getElementById("ask");
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-ask]");
  if (link && ask) {
    event.preventDefault();
    ask.querySelector("form").action = link.dataset.ask;
    ask.querySelector("[data-ask-name]").textContent = link.dataset.name;
    ask.showModal();
  } else if (event.target.closest?.("[data-ask-cancel]") || (ask && event.target === ask)) {
    ask.close();
  }
});

// Browsers offer the clipboard only to pages from https or localhost.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    const icon = button.querySelector(".bi");
    icon.className = "bi bi-check-lg";
    document.getElementById("announce").textContent = "Copied.";
    setTimeout(() => {
      icon.className = "bi bi-copy";
      document.getElementById("announce").textContent = "";
    }, 2000);
  });
}

document.querySelector("[aria-invalid=true]")?.focus();
