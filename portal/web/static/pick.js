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

  // Two sessions may have similar names: the job's number and the age tell them apart.
  function detail(row) {
    const text = document.createElement("span");
    text.className = "sub";
    text.textContent = `${row.dataset.job ? `job ${row.dataset.job}, ` : ""}launched ${slipwayTimes.age(row.dataset.created)} ago`;
    return text;
  }

  function ask(ids) {
    ending = ids;
    const found = ids.map((id) => document.getElementById(`s-${id}`)).filter(Boolean);
    const names = found.map((row) => ("foreign" in row.dataset ? `${row.dataset.owner}'s ${row.dataset.name}` : row.dataset.name));
    const reason = dialog.querySelector(".end-reason");
    if (reason) {
      reason.hidden = !found.some((row) => "foreign" in row.dataset);
      reason.querySelector("input").value = "";
    }
    const one = ids.length === 1;
    document.getElementById("end-title").textContent = one ? `End ${names[0]}?` : `End ${many(ids.length)}?`;
    const list = dialog.querySelector(".end-names");
    list.hidden = one;
    list.replaceChildren(...(one ? [] : names).map((name, place) => {
      const item = document.createElement("li");
      const kept = document.createElement("span");
      kept.className = "sub";
      kept.textContent = `${found[place].dataset.kept}`;
      item.append(name, detail(found[place]), kept);
      return item;
    }));
    for (const fact of ["stays", "goes", "advice"]) {
      dialog.querySelector(`[data-${fact}]`).textContent = one ? found[0]?.dataset[fact] ?? "" : "";
    }
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

  // After an end the keyboard goes on at the next row, else at the one before, else at the start.
  function focusBeside(ids) {
    const all = [...rows.querySelectorAll("[data-session]")].map((row) => row.dataset.session);
    const first = Math.max(all.findIndex((id) => ids.includes(id)), 0);
    const left = [...all.slice(first), ...all.slice(0, first).reverse()].filter((id) => !ids.includes(id));
    if (left.length) slipwayRows.focus(left[0]);
    else document.querySelector(".start")?.focus({ preventScroll: true });
  }

  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const values = { csrf_token: form.elements.csrf_token.value, ids: ending, reason: form.elements.reason?.value ?? "" };
    dialog.close();
    focusBeside(ending);
    trouble.hidden = true;
    picked.clear();
    draw();
    rows.dataset.mark = "";
    htmx.ajax("POST", `/sessions/end${location.search}`, { source: form, target: rows, swap: "morph:innerHTML", values });
  });

  function failed(event) {
    if (event.detail.elt !== dialog.querySelector("form")) return;
    trouble.textContent = event.detail.xhr.status === 404
      ? "Nothing was ended: some of these sessions no longer exist."
      : `The portal did not answer. ${ending.length === 1 ? "It" : "They"} may not have been ended. The list will show it when the connection is back.`;
    trouble.hidden = false;
    outdated = event.detail.xhr.status !== 404;
  }
  // The list tells how it went: the message goes away with the next answer.
  let outdated = false;
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (event.detail.elt !== rows || event.detail.xhr.status >= 400 || !outdated) return;
    outdated = false;
    trouble.hidden = true;
  });
  document.addEventListener("htmx:sendError", failed);
  document.addEventListener("htmx:timeout", failed);
  document.addEventListener("htmx:responseError", failed);
  draw();
})();
