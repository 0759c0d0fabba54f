// Shows that the password is being checked, which takes seconds if it is wrong.
function start() {
  const form = document.querySelector("form[action='/login']");
  const button = form?.querySelector("button");
  const status = document.getElementById("login-status");
  if (!button) return;
  const word = button.querySelector("span");
  const usual = word.textContent;

  form.addEventListener("submit", () => {
    // Afterwards: a disabled button would not submit.
    setTimeout(() => {
      button.disabled = true;
      button.setAttribute("aria-busy", "true");
      word.textContent = "Checking…";
      status.textContent = "Your password is being checked.";
    });
  });
  // Back in the history, the page may come from memory.
  addEventListener("pageshow", () => {
    button.disabled = false;
    button.removeAttribute("aria-busy");
    word.textContent = usual;
    status.textContent = "";
  });
}
start();
