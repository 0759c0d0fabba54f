// The launch panel: versions follow the environment, bounds follow the resource group.
(() => {
  function versions(panel) {
    const environment = panel.querySelector("#field-environment");
    const version = panel.querySelector("#field-version");
    const all = version.slipwayAll ?? [...version.options];
    version.slipwayAll = all;
    const picked = version.value;
    const fitting = all.filter((option) => option.dataset.environment === environment.value);
    version.replaceChildren(...fitting);
    const same = fitting.find((option) => option.selected || option.value === picked) ?? fitting[0];
    if (same) version.value = same.value;
    about(panel);
  }

  function about(panel) {
    const option = panel.querySelector("#field-version").selectedOptions[0];
    panel.querySelector("[data-about-line]").textContent = option?.dataset.about ?? "";
  }

  function bounds(panel) {
    const group = panel.querySelector("#field-resource_group");
    // No choice means the default, whose bounds the server wrote.
    const option = group.value ? group.selectedOptions[0] : null;
    for (const element of panel.querySelectorAll("[data-bound]")) {
      element.dataset.first ??= element.textContent;
      element.textContent = option?.dataset[element.dataset.bound] ?? element.dataset.first;
    }
    for (const hint of panel.querySelectorAll("[data-why]")) {
      hint.dataset.first ??= hint.title;
      hint.title = option?.dataset[`${hint.dataset.why}Why`] ?? hint.dataset.first;
    }
    const cpus = panel.querySelector("#field-resources-cpus");
    cpus.dataset.first ??= cpus.max;
    cpus.max = option?.dataset.cpus ?? cpus.dataset.first;
  }

  function prepare() {
    const panel = document.getElementById("launch");
    if (!panel || panel.dataset.prepared) return;
    panel.dataset.prepared = "yes";
    versions(panel);
    bounds(panel);
    panel.querySelector("#field-environment").addEventListener("change", () => versions(panel));
    panel.querySelector("#field-version").addEventListener("change", () => about(panel));
    panel.querySelector("#field-resource_group").addEventListener("change", () => bounds(panel));
    panel.querySelector("[aria-invalid=true]")?.focus();
  }

  prepare();
  document.addEventListener("htmx:afterSettle", prepare);
  // Refused launches come back as a panel that says why: they belong on the page as well.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.getResponseHeader("X-Slipway-Panel") !== "launch") return;
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  });
})();
