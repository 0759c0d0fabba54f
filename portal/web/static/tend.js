// The list's small buttons (more time, release), and lines of a log that stay open while the list renews.
(() => {
  const form = document.getElementById("tend");
  const problem = document.getElementById("tend-problem");
  const rows = document.getElementById("rows");
  if (!form || !rows) return;

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    button.disabled = true; // twice would be twice as much
    problem.hidden = true;
    try {
      const answer = await fetch(button.formAction, {
        method: "POST", body: new FormData(form), headers: { "HX-Request": "true" },
      });
      if (!answer.ok) throw new Error(await answer.text());
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
  // The server does not know what is open here: its new rows would close it.
  document.addEventListener("htmx:beforeSwap", () => {
    for (const one of rows.querySelectorAll(".last-lines[open]")) open.add(one.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  });
})();
