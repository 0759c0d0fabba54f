// A session's log: reads on from where it was, and follows while the session lives.
(() => {
  const log = document.getElementById("log");
  const state = document.getElementById("log-state");
  const follow = document.querySelector("[data-follow]");
  const EVERY = 2000;
  let offset = 0;

  async function read() {
    let wait = EVERY;
    try {
      const answer = await fetch(`${log.dataset.url}?offset=${offset}`, { redirect: "error" });
      const text = await answer.text();
      if (!answer.ok) throw new Error(answer.status === 503 ? text : "The log cannot be read.");
      const next = Number(answer.headers.get("X-Next-Offset"));
      const over = answer.headers.get("X-Session-Over") === "yes";
      log.append(text);
      if (text && follow.checked) log.scrollTop = log.scrollHeight;
      if (next > offset) wait = text.length > 100_000 ? 0 : EVERY;
      else if (over) wait = null;
      offset = next;
      state.textContent = over && wait === null
        ? (offset ? "This is all; the session is over." : "The session is over and left no log.")
        : (offset ? "Following." : "Nothing has been written yet.");
    } catch (error) {
      const lost = error instanceof TypeError; // the browser's own words mean little to people
      state.textContent = `${lost ? "Connection lost." : error.message} Trying again…`;
      wait = 2 * EVERY;
    }
    if (wait !== null) setTimeout(read, wait);
  }

  follow.addEventListener("change", () => {
    if (follow.checked) log.scrollTop = log.scrollHeight;
  });
  read();
})();
