// The page of one session: shows its news, announces changes, and shows the end of its log.
(() => {
  const head = document.getElementById("session-head");
  const announce = document.getElementById("announce");
  const end = document.getElementById("log-end");
  const LOG_EVERY = 10e3; // milliseconds
  const LINES = 14;

  const now = () => head.querySelector(".session-head").dataset;
  let state = now().state;

  slipwayPoll(head);

  // The server does not know which details are open: its new parts would close them.
  const open = new Set();
  document.addEventListener("toggle", ({ target }) => {
    if (!target.id || !target.matches("details")) return;
    if (target.open) open.add(target.id);
    else open.delete(target.id);
  }, true);
  let unfolded = [];
  document.addEventListener("htmx:beforeSwap", () => { unfolded = [...open]; });

  const WORDS = { PENDING: "is pending", STARTING: "is starting", RUNNING: "is running", ENDING: "is ending" };
  document.addEventListener("htmx:afterSettle", () => {
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    slipwayTimes.refresh();
    if (now().state === state) return;
    state = now().state;
    announce.textContent = `${now().name} ${WORDS[state] ?? "has ended"}.`;
    readLog();
  });

  // The end of the log, from the login node: rarely, and only while somebody looks.
  let timer;
  async function readLog() {
    clearTimeout(timer);
    if (!end) return;
    let over = false;
    if (!document.hidden) {
      try {
        const response = await fetch(end.dataset.url, { redirect: "error" });
        const text = await response.text();
        over = response.headers.get("X-Over") === "yes";
        show(response.ok ? text : response.status === 503 ? text : "The log cannot be read.");
      } catch {
        // The portal is unavailable; what is shown stays.
      }
    }
    if (!over) timer = setTimeout(readLog, LOG_EVERY);
  }

  function show(text) {
    const lines = slipwayTimes.logLines(text.trimEnd().split("\n").slice(-LINES).join("\n"));
    if (!lines) {
      end.innerHTML = "<p class='sub'>Nothing has been written yet.</p>";
      return;
    }
    const pre = end.querySelector("pre") ?? document.createElement("pre");
    if (!pre.isConnected) {
      pre.tabIndex = 0;
      pre.setAttribute("role", "group");
      pre.setAttribute("aria-label", "Last lines of the log");
      end.replaceChildren(pre);
    }
    if (pre.textContent === lines) return;
    pre.textContent = lines;
    pre.scrollTop = pre.scrollHeight;
  }
  readLog();
})();
