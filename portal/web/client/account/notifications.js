// The switch for browser notifications; sessions/notify.js shows them on the Sessions page.
import { notifies, ON } from "../common/notifying.js";

function start() {
  const button = document.getElementById("notify");
  const state = document.getElementById("notify-state");
  const say = document.getElementById("notify-say");
  const FORBIDDEN = "Your browser blocks notifications of this site. Allow them in its settings "
    + "(beside the address), then press again.";
  if (!("Notification" in window)) {
    say.textContent = "This browser has no notifications, or allows them only over https.";
    return;
  }

  /** @param {string | null | undefined} [text] */
  function show(text) {
    const on = notifies();
    button.hidden = false;
    state.hidden = false;
    state.textContent = on ? "On" : "Off";
    state.className = `chip ${on ? "live" : "quiet"}`;
    button.setAttribute("aria-pressed", String(on));
    button.className = `btn ${on ? "btn-quiet" : "btn-primary"}`;
    button.querySelector(".bi").className = `bi bi-${on ? "bell-slash" : "bell"}`;
    button.querySelector("span").textContent = on ? "Turn off" : "Turn on";
    if (text !== undefined) say.textContent = text;
  }

  button.addEventListener("click", async () => {
    if (notifies()) {
      localStorage.removeItem(ON);
      show("Notifications are off.");
      return;
    }
    const answer = await Notification.requestPermission();
    if (answer === "granted") localStorage.setItem(ON, "on");
    show(answer === "granted" ? "Notifications are on." : answer === "denied" ? FORBIDDEN : "");
  });
  addEventListener("storage", ({ key }) => { if (key === ON) show(); });
  show();
}
start();
