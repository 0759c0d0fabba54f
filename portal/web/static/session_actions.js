// The list's small buttons (extend, keep, release); keeps the last lines of logs open across updates.
(() => {
  const form = document.getElementById("session-actions");
  const problem = document.getElementById("session-actions-problem");
  const rows = document.getElementById("rows");
  if (!form || !rows) return;

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    button.disabled = true; // a second click would extend twice
    problem.hidden = true;
    try {
      const response = await fetch(button.formAction, {
        method: "POST", body: new FormData(form), headers: { "HX-Request": "true" },
      });
      if (!response.ok) throw new Error(await response.text());
    } catch (error) {
      problem.textContent = error instanceof TypeError ? "The portal does not answer. Try again." : error.message;
      problem.hidden = false;
    }
    button.disabled = false;
    htmx.trigger(rows, "refresh");
  });

  const open = new Set();
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches?.(".last-lines")) return;
    if (target.open) open.add(target.id);
    else open.delete(target.id);
  }, true);
  // The server does not know which details are open: its new rows would close them.
  document.addEventListener("htmx:beforeSwap", () => {
    for (const one of rows.querySelectorAll(".last-lines[open]")) open.add(one.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  });
})();
