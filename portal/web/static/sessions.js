// The list of sessions: keeps itself up to date, says what changed, asks before it ends anything.
(() => {
  const rows = document.getElementById("rows");
  const link = document.getElementById("link");
  const announce = document.getElementById("announce");
  const dialog = document.getElementById("stop");
  const HIDDEN_EVERY = 5; // a page that nobody looks at asks less often
  let skipped = 0;
  let failures = 0;

  const isPoll = (event) => event.detail.elt === rows;

  document.addEventListener("htmx:configRequest", (event) => {
    if (isPoll(event) && event.detail.verb === "get") {
      event.detail.headers["If-None-Match"] = rows.dataset.mark;
    }
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isPoll(event) || !document.hidden) return;
    skipped = (skipped + 1) % HIDDEN_EVERY;
    if (skipped) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
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

  let before = states();
  function tell() {
    const now = states();
    const news = [];
    for (const [id, { name, state }] of now) {
      if (before.get(id)?.state !== state) news.push(`${name} ${WORDS[state] ?? "has ended"}`);
    }
    for (const [id, { name }] of before) {
      if (!now.has(id)) news.push(`${name} has ended`);
    }
    before = now;
    if (news.length) announce.textContent = `${news.join(". ")}.`;
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== rows) return;
    slipwayTimes.refresh();
    tell();
  });

  // Ending a session: one dialog for all rows.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-stop]");
    if (button) {
      dialog.querySelector("form").action = button.dataset.stop;
      dialog.querySelector("[data-stop-name]").textContent = button.dataset.name;
      dialog.showModal();
    } else if (event.target.closest?.("[data-stop-cancel]") || event.target === dialog) {
      dialog.close();
    }
  });
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const values = Object.fromEntries(new FormData(form));
    dialog.close();
    htmx.ajax("POST", form.action, { source: rows, target: rows, swap: "morph:innerHTML", values });
  });

  // App menus stay beside their button, on whichever side there is room.
  // A rule in a sheet of our own: an attribute of the menu would be lost at the next update.
  const place = new CSSStyleSheet();
  document.adoptedStyleSheets.push(place);

  function placeMenu() {
    const menu = document.querySelector(".menu:popover-open");
    if (!menu) return;
    const button = document.querySelector(`[popovertarget="${menu.id}"]`).getBoundingClientRect();
    const { width, height } = menu.getBoundingClientRect();
    const below = button.bottom + 6 + height < innerHeight;
    const top = below ? button.bottom + 6 : Math.max(8, button.top - height - 6);
    const left = Math.max(12, Math.min(button.right - width, innerWidth - width - 12));
    place.replaceSync(`.menu:popover-open { top: ${top}px; left: ${left}px; }`);
  }
  document.addEventListener("toggle", (event) => {
    if (!event.target.matches?.(".menu") || event.newState !== "open") return;
    placeMenu();
    event.target.querySelector("button").focus({ preventScroll: true });
  }, true);
  addEventListener("scroll", placeMenu, { capture: true, passive: true });
  addEventListener("resize", placeMenu);
  document.addEventListener("htmx:afterSwap", placeMenu);
  document.addEventListener("click", (event) => {
    event.target.closest?.(".menu-item")?.closest(".menu").hidePopover();
  });
})();
