// The list of sessions: polls for updates, applies the filters, announces changes.
// The URL alone determines what is shown: polls, filters and the back button use it.
(() => {
  const rows = document.getElementById("rows");
  const link = document.getElementById("link");
  const announce = document.getElementById("announce");
  const filters = document.getElementById("filters");
  const HIDDEN_EVERY = 5; // a hidden page polls less often
  const TYPING = 300; // milliseconds that a search waits for the next key
  const FRESH = 6000; // milliseconds for which new rows are highlighted
  let skipped = 0;
  let failures = 0;

  const isPoll = (event) => event.detail.elt === rows;

  document.addEventListener("htmx:configRequest", (event) => {
    if (!isPoll(event)) return;
    event.detail.path = `/sessions/rows${location.search}`;
    event.detail.headers["If-None-Match"] = rows.dataset.mark;
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isPoll(event) || !document.hidden) return;
    skipped = (skipped + 1) % HIDDEN_EVERY;
    if (skipped) event.preventDefault();
  });
  // The filters may have changed while the response was in flight: wait for the next one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isPoll(event)) return;
    if (new URL(event.detail.xhr.responseURL).search !== location.search) event.detail.shouldSwap = false;
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  // A page from the back/forward cache is outdated, and so is its idempotency key.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  function refresh() {
    htmx.trigger(rows, "refresh");
  }

  // A lost connection is shown after the second failure in a row, until a poll succeeds.
  function lost(event) {
    if (!isPoll(event)) return;
    failures += 1;
    link.hidden = failures < 2;
  }
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:timeout", lost);
  document.addEventListener("htmx:responseError", lost);
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { xhr } = event.detail;
    if (!isPoll(event) || xhr.status >= 400) return;
    failures = 0;
    link.hidden = true;
    slipwayTimes.setServerTime(xhr.getResponseHeader("Date"));
    const mark = xhr.getResponseHeader("ETag");
    if (mark) rows.dataset.mark = mark.replaceAll('"', "");
  });

  // Filters, tabs, column headers and pages change the URL, and load its rows.
  function show() {
    rows.dataset.mark = "";
    refresh();
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
    highlight();
    setTimeout(unhighlight, FRESH);
  }
})();
