// The list of sessions: keeps itself up to date, follows the filters, says what changed.
// The address is the one truth of what is shown: polls, filters and the back button go by it.
(() => {
  const rows = document.getElementById("rows");
  const link = document.getElementById("link");
  const announce = document.getElementById("announce");
  const filters = document.getElementById("filters");
  const HIDDEN_EVERY = 5; // a page that nobody looks at asks less often
  const TYPING = 300; // milliseconds that a search waits for the next letter
  const FRESH = 6000; // milliseconds that new rows stand out
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
  // The filters may have changed while the answer was under way: the next one is the right one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isPoll(event)) return;
    if (new URL(event.detail.xhr.responseURL).search !== location.search) event.detail.shouldSwap = false;
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  // A page that comes back from the browser's memory is old, and so is its key for launching.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  function refresh() {
    htmx.trigger(rows, "refresh");
  }

  // A lost connection shows after the second failure in a row, and heals by itself.
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
    slipwayTimes.serverSaid(xhr.getResponseHeader("Date"));
    const mark = xhr.getResponseHeader("ETag");
    if (mark) rows.dataset.mark = mark.replaceAll('"', "");
  });

  // Filters, tabs, heads of columns and pages: another address, and the rows that belong to it.
  function show() {
    rows.dataset.mark = "";
    refresh();
  }

  function asked() {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(filters)) {
      const usual = name === "sort" && value === "-created";
      if (value.trim() && !usual) query.set(name, value.trim());
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

  // The form shows what the address says.
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

  // Whether a session that is no longer shown has ended: on other tabs, and where there are more
  // pages than this one, it may just have moved on.
  function lives() {
    const tab = new URLSearchParams(location.search).get("state") ?? "running";
    return tab === "running" && !rows.querySelector(".pages");
  }

  // What changed is said; what merely came into view by another filter is not news.
  let before = states();
  let shown = location.search;
  function tell() {
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
    light();
    tell();
  });

  // What was launched just now stands out for a moment. The address forgets it at once: a page
  // that is loaded again has nothing new.
  let fresh = rows.dataset.fresh.split(" ").filter(Boolean);
  function light() {
    for (const id of fresh) document.getElementById(`s-${id}`)?.classList.add("fresh");
  }
  function dim() {
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
    light();
    setTimeout(dim, FRESH);
  }
})();
