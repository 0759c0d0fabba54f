// The dialog for environment variables. Saved values are in a hidden field of the launch panel, so
// they are submitted with it and come back with it after an error.
(() => {
  const dialog = document.getElementById("env");
  const ask = document.getElementById("env-ask");
  const rows = dialog.querySelector("[data-env-rows]");
  const problem = dialog.querySelector("[data-env-problem]");
  const help = dialog.querySelector("[data-env-help]");
  const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
  let before = "";

  const field = () => document.querySelector("[data-env]");

  function stored() {
    try {
      return Object.entries(JSON.parse(field().value || "{}"));
    } catch {
      return [];
    }
  }

  function label() {
    [...rows.children].forEach((row, place) => {
      const number = place + 1;
      row.setAttribute("aria-label", `Variable ${number}`);
      row.querySelector("[data-env-name]").setAttribute("aria-label", `Name ${number}`);
      row.querySelector("[data-env-value]").setAttribute("aria-label", `Value ${number}`);
      const remove = row.querySelector("[data-env-remove]");
      remove.setAttribute("aria-label", `Remove variable ${number}`);
      remove.title = "Remove";
    });
  }

  function add(name = "", value = "") {
    rows.append(document.getElementById("env-line").content.cloneNode(true));
    const row = rows.lastElementChild;
    row.querySelector("[data-env-name]").value = name;
    row.querySelector("[data-env-value]").value = value;
    label();
    return row.querySelector("[data-env-name]");
  }

  function clear() {
    rows.replaceChildren();
    problem.textContent = "";
    return add();
  }

  function remove(row) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    problem.textContent = "";
    (next ? next.querySelector("[data-env-name]") : add()).focus();
    label();
  }

  const typed = () =>
    [...rows.children].map((row) => [
      row.querySelector("[data-env-name]").value.trim(),
      row.querySelector("[data-env-value]").value,
    ]);
  const state = () => JSON.stringify(typed().filter(([name, value]) => name || value));

  function open() {
    rows.replaceChildren();
    for (const [name, value] of stored()) add(name, value);
    if (!rows.children.length) add();
    problem.textContent = "";
    showHelp(false);
    before = state();
    dialog.showModal();
    rows.querySelector("[data-env-name]").focus();
  }

  function close() {
    if (state() === before) dialog.close();
    else ask.showModal();
  }

  // The server decides which names are refused; this only catches errors of form.
  function wrong(pairs) {
    const seen = new Set();
    for (const [name] of pairs) {
      if (!NAME.test(name)) return [name, "is not a valid name: use letters, digits and _, no digit first."];
      if (seen.has(name)) return [name, "occurs twice."];
      seen.add(name);
    }
    return null;
  }

  function mark(name) {
    for (const row of rows.children) {
      const box = row.querySelector("[data-env-name]");
      box.toggleAttribute("aria-invalid", false);
      if (name !== null && box.value.trim() === name) {
        box.setAttribute("aria-invalid", "true");
        box.focus();
      }
    }
  }

  function save() {
    const pairs = typed().filter(([name, value]) => name && value);
    const found = wrong(pairs);
    mark(found?.[0] ?? null);
    problem.textContent = found ? found.join(" ") : "";
    if (found) return;
    field().value = pairs.length ? JSON.stringify(Object.fromEntries(pairs)) : "";
    const names = pairs.map(([name]) => name).join(", ");
    document.querySelector("[data-env-summary]").textContent = names || "none set";
    document.getElementById("error-env")?.remove();
    document.getElementById("field-env").setAttribute("aria-describedby", "hint-env");
    dialog.close();
  }

  function showHelp(shown) {
    document.getElementById("env-help").hidden = !shown;
    help.setAttribute("aria-expanded", String(shown));
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-env-open]")) open();
  });
  dialog.addEventListener("click", (event) => {
    const pressed = (name) => event.target.closest(`[data-env-${name}]`);
    if (pressed("add")) add().focus();
    else if (pressed("remove")) remove(event.target.closest(".env-row"));
    else if (pressed("clear")) clear().focus();
    else if (pressed("help")) showHelp(help.getAttribute("aria-expanded") !== "true");
    else if (pressed("close")) close();
  });
  // Not "click": a drag that starts in a field and ends outside must not close the dialog.
  dialog.addEventListener("pointerdown", (event) => {
    if (event.target === dialog) close();
  });
  dialog.addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    close();
  });
  dialog.addEventListener("cancel", (event) => {
    if (event.target !== dialog) return;
    event.preventDefault();
    close();
  });
  ask.querySelector("[data-env-stay]").addEventListener("click", () => ask.close());
  ask.querySelector("[data-env-discard]").addEventListener("click", () => {
    ask.close();
    dialog.close();
  });
})();
