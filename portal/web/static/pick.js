// Selecting sessions, and ending one or many after a confirmation dialog.
(() => {
  const rows = document.getElementById("rows");
  const bar = document.getElementById("picked");
  const dialog = document.getElementById("end");
  const trouble = document.getElementById("trouble");
  const picked = new Set();
  let ending = [];

  const boxes = () => [...rows.querySelectorAll("input[name=ids]")];
  const many = (number) => (number === 1 ? "session" : `${number} sessions`);

  // Restores the selection after an update of the rows; sessions that left the list are deselected.
  function draw() {
    const there = boxes();
    const values = new Set(there.map((box) => box.value));
    for (const id of picked) if (!values.has(id)) picked.delete(id);
    for (const box of there) {
      box.checked = picked.has(box.value);
      box.closest("tr").classList.toggle("is-picked", box.checked);
    }
    const all = document.getElementById("pick-all");
    if (all) {
      all.checked = there.length > 0 && picked.size === there.length;
      all.indeterminate = picked.size > 0 && !all.checked;
      all.disabled = there.length === 0;
    }
    bar.hidden = picked.size === 0;
    const text = `${picked.size} selected`;
    const count = document.getElementById("picked-count");
    if (count.textContent !== text) count.textContent = text;
    bar.querySelector("[data-end-picked] span").textContent = `End ${many(picked.size)}`;
    bar.querySelector("[data-pick-all]").hidden = picked.size === there.length;
  }

  function pick(wanted) {
    for (const box of boxes()) {
      if (wanted) picked.add(box.value);
      else picked.delete(box.value);
    }
    draw();
  }

  rows.addEventListener("change", (event) => {
    if (event.target.id === "pick-all") {
      pick(event.target.checked);
    } else if (event.target.name === "ids") {
      if (event.target.checked) picked.add(event.target.value);
      else picked.delete(event.target.value);
      draw();
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === rows) draw();
  });

  function ask(ids) {
    ending = ids;
    const found = ids.map((id) => document.getElementById(`s-${id}`)).filter(Boolean);
    const owners = new Set([...rows.querySelectorAll("[data-owner]")].map((row) => row.dataset.owner));
    const names = found.map((row) => (owners.size > 1 ? `${row.dataset.name} of ${row.dataset.owner}` : row.dataset.name));
    const one = ids.length === 1;
    document.getElementById("end-title").textContent = one ? `End ${names[0]}?` : `End ${many(ids.length)}?`;
    const list = dialog.querySelector(".end-names");
    list.hidden = one;
    list.replaceChildren(...(one ? [] : names).map((name) => {
      const item = document.createElement("li");
      item.textContent = name;
      return item;
    }));
    for (const text of dialog.querySelectorAll("[data-many]")) text.hidden = (text.dataset.many === "true") === one;
    dialog.querySelector(".btn-danger span").textContent = `End ${many(ids.length)}`;
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("[data-end]");
    if (target) {
      event.preventDefault();
      ask([target.dataset.end]);
    } else if (event.target.closest?.("[data-end-picked]")) {
      ask(boxes().map((box) => box.value).filter((id) => picked.has(id)));
    } else if (event.target.closest?.("[data-pick-all]")) {
      pick(true);
    } else if (event.target.closest?.("[data-pick-none]")) {
      pick(false);
      rows.querySelector("input[name=ids]")?.focus();
    } else if (event.target.closest?.("[data-end-cancel]") || event.target === dialog) {
      dialog.close();
    }
  });

  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const values = { csrf_token: form.elements.csrf_token.value, ids: ending };
    dialog.close();
    trouble.hidden = true;
    picked.clear();
    draw();
    rows.dataset.mark = "";
    htmx.ajax("POST", `/sessions/end${location.search}`, { source: form, target: rows, swap: "morph:innerHTML", values });
  });

  function failed(event) {
    if (event.detail.elt !== dialog.querySelector("form")) return;
    trouble.textContent = event.detail.xhr.status === 404
      ? "Nothing was ended: some of these sessions no longer exist. Look at the list again."
      : "The portal did not answer. Nothing may have been ended: look at the list again.";
    trouble.hidden = false;
  }
  document.addEventListener("htmx:sendError", failed);
  document.addEventListener("htmx:timeout", failed);
  document.addEventListener("htmx:responseError", failed);
  draw();
})();
