// Announcements that this browser has hidden stay hidden until their text changes (early.js).
import { hidden, hide } from "./hidden.js";

const hiddenMarks = hidden();
for (const banner of document.querySelectorAll("[data-banner]")) {
  banner.hidden = hiddenMarks.includes(banner.dataset.banner);
  const button = banner.querySelector("[data-banner-hide]");
  button.hidden = false;
  button.addEventListener("click", () => {
    banner.hidden = true;
    hide(banner.dataset.banner);
    document.getElementById("main")?.focus({ preventScroll: true });
  });
}

// Pages without times.js show its time in the reader's zone as well.
const form = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll(".banners time")) time.textContent = form.format(new Date(time.dateTime));
