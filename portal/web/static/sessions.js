// The list of sessions: applies the filters, announces changes.
// The URL alone determines what is shown: polls, filters and the back button use it.
(() => {
  const rows = document.getElementById("rows");
  const announce = document.getElementById("announce");
  const filters = document.getElementById("filters");
  const TYPING = 300; // milliseconds that a search waits for the next key
  const FRESH = 6000; // milliseconds for which new rows are highlighted

  slipwayPoll(rows, () => `/sessions/rows${location.search}`);
  // The filters may have changed while the response was in flight: wait for the next one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.elt !== rows) return;
    if (new URL(event.detail.xhr.responseURL).search !== location.search) event.detail.shouldSwap = false;
  });

  // Filters, tabs, column headers and pages change the URL, and load its rows.
  function show() {
    rows.dataset.mark = "";
    htmx.trigger(rows, "refresh");
  }

  function asked() {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(filters)) {
      const byDefault = name === "sort" && value === "-created";
      if (value.trim() && !byDefault) query.set(name, value.trim());
    }
    return `?${query}`;
  }

  function filter() {
    clearTimeout(typing);
    const search = asked();
    if (search === location.search) return;
    history.replaceState(null, "", search);
    show();
  }

  let typing;
  filters.addEventListener("input", (event) => {
    clearTimeout(typing);
    // Each status belongs to one tab.
    const tab = event.target.selectedOptions?.[0]?.dataset.tab;
    if (tab) filters.elements.state.value = tab;
    typing = setTimeout(filter, event.target.type === "search" ? TYPING : 0);
  });
  filters.addEventListener("submit", (event) => {
    event.preventDefault();
    filter();
  });

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("a[data-live]");
    if (!target || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    history.pushState(null, "", target.href);
    follow();
  });
  addEventListener("popstate", follow);

  // The group of the usage bars, which does not filter the list.
  document.addEventListener("change", (event) => {
    if (event.target.id !== "usage-select") return;
    const query = new URLSearchParams(location.search);
    query.set("group", event.target.value);
    history.pushState(null, "", `?${query}`);
    follow();
  });

  // Sets the form from the URL.
  function follow() {
    const query = new URLSearchParams(location.search);
    for (const field of filters.elements) {
      if (field.name) field.value = query.get(field.name) ?? { state: "running", sort: "-created" }[field.name] ?? "";
    }
    show();
  }

  const WORDS = {
    PENDING: "is pending",
    STARTING: "is starting",
    RUNNING: "is running",
    ENDING: "is ending",
    UNKNOWN: "is in an unknown state",
  };

  function states() {
    const found = new Map();
    for (const row of rows.querySelectorAll("[data-session]")) {
      found.set(row.dataset.session, { name: row.dataset.name, state: row.dataset.state });
    }
    return found;
  }

  // Whether a session that is no longer shown has ended; on other tabs, and if the list has several
  // pages, it may just have moved.
  function lives() {
    const tab = new URLSearchParams(location.search).get("state") ?? "running";
    return tab === "running" && !rows.querySelector(".pages");
  }

  // Announces changes, but not sessions that merely match another filter.
  let before = states();
  let shown = location.search;
  function announceChanges() {
    const now = states();
    const news = [];
    if (shown === location.search) {
      for (const [id, { name, state }] of now) {
        if (before.get(id)?.state !== state) news.push(`${name} ${WORDS[state] ?? "has ended"}`);
      }
      for (const [id, { name }] of before) {
        if (!now.has(id) && lives()) news.push(`${name} has ended`);
      }
    } else {
      news.push(now.size === 1 ? "1 session shown" : `${now.size || "No"} sessions shown`);
    }
    before = now;
    shown = location.search;
    if (news.length) announce.textContent = `${news.join(". ")}.`;
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== rows) return;
    slipwayTimes.refresh();
    highlight();
    announceChanges();
  });

  // Sessions that were just launched are highlighted for a moment. They are removed from the URL at
  // once, so that a reload does not highlight them again.
  let fresh = rows.dataset.fresh.split(" ").filter(Boolean);
  // The keyboard goes on at the new row: its app's button once there is one, else its first button.
  function focusRow(id) {
    const row = document.getElementById(`s-${id}`);
    const buttons = row ? [...row.querySelectorAll(".controls .btn")] : [];
    const main = buttons.findLast((button) => button.matches(".split .btn")) ?? buttons[0];
    main?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  }
  window.slipwayRows = { focus: focusRow };
  function highlight() {
    for (const id of fresh) document.getElementById(`s-${id}`)?.classList.add("fresh");
  }
  function unhighlight() {
    for (const id of fresh) document.getElementById(`s-${id}`)?.classList.remove("fresh");
    fresh = [];
  }
  const query = new URLSearchParams(location.search);
  if (query.has("new")) {
    query.delete("new");
    history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
    shown = location.search;
    const names = fresh.map((id) => before.get(id)?.name).filter(Boolean);
    if (names.length) setTimeout(() => { announce.textContent = `Launched: ${names.join(", ")}.`; }, 300);
    focusRow(fresh[0]);
    highlight();
    setTimeout(unhighlight, FRESH);
  }
})();
