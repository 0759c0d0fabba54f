// Times in the user's time zone, and durations that tick without requests to the server.
(() => {
  let ahead = 0; // milliseconds by which the browser's clock is ahead of the server's

  const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
  const seconds = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const day = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
  const full = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "long" });

  function shown(time, form) {
    const today = new Date(Date.now() - ahead).toDateString() === time.toDateString();
    const text = (form === "seconds" ? seconds : clock).format(time);
    return today ? text : `${day.format(time)}, ${text}`;
  }

  function span(milliseconds) {
    const total = Math.max(0, Math.floor(milliseconds / 1000));
    const days = Math.floor(total / 86400);
    const two = (number) => String(number).padStart(2, "0");
    const rest = `${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
    const hours = Math.floor(total / 3600) % 24;
    return days ? `${days} d ${two(hours)}:${rest}` : `${hours}:${rest}`;
  }

  function localise() {
    for (const element of document.querySelectorAll("time[datetime]")) {
      const time = new Date(element.dateTime);
      const text = shown(time, element.dataset.form);
      if (element.textContent !== text) element.textContent = text;
      element.title = full.format(time);
    }
  }

  function tick() {
    for (const element of document.querySelectorAll(".elapsed")) {
      const end = element.dataset.to ? Date.parse(element.dataset.to) : Date.now() - ahead;
      element.textContent = span(end - Date.parse(element.dataset.from));
    }
    for (const element of document.querySelectorAll(".remaining")) {
      const left = Date.parse(element.dataset.until) - Date.now() + ahead;
      element.textContent = left > 0 ? `in ${span(left)}` : "now";
    }
  }

  window.slipwayTimes = {
    refresh() {
      localise();
      tick();
    },
    now: () => Date.now() - ahead, // by the server's clock
    setServerTime(date) {
      const offset = Date.now() - Date.parse(date);
      // The header has whole seconds and takes a while to arrive: ignore small differences.
      if (Number.isFinite(offset)) ahead = Math.abs(offset) > 3000 ? offset : 0;
    },
  };
  window.slipwayTimes.refresh();
  setInterval(tick, 1000);
})();
