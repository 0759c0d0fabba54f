// Announcements that this browser has hidden stay hidden until their text changes.
(() => {
  const KEY = "slipway-hidden-announcements";
  const MOST = 100; // those that were hidden first are forgotten first

  function hidden() {
    try {
      const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
      return Array.isArray(found) ? found : [];
    } catch {
      return []; // storage may be blocked, or hold something else
    }
  }

  const known = hidden();
  for (const banner of document.querySelectorAll("[data-banner]")) {
    banner.hidden = known.includes(banner.dataset.banner);
    const button = banner.querySelector("[data-banner-hide]");
    button.hidden = false;
    button.addEventListener("click", () => {
      banner.hidden = true;
      try {
        localStorage.setItem(KEY, JSON.stringify([...hidden(), banner.dataset.banner].slice(-MOST)));
      } catch {
        // It is hidden on this page only.
      }
      document.getElementById("main")?.focus({ preventScroll: true });
    });
  }

  // Pages without times.js show its time in the reader's zone as well.
  const form = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });
  for (const time of document.querySelectorAll(".banners time")) time.textContent = form.format(new Date(time.dateTime));
})();
