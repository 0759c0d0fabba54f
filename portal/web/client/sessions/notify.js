// Browser notifications: a waiting session starts, one ends soon (time limit or idle), one ended
// unexpectedly. The page /account/notifications turns them on.
import { notifies } from "../common/notifying.js";
import * as localTimes from "../common/times.js";

function start() {
  const rows = document.getElementById("rows");
  if (!rows || !("Notification" in window)) return;

  const NOTIFIED = "slipway-told";
  const RETENTION = 2 * 86400e3; // milliseconds for which notifications are remembered
  const WARNINGS = [15, 5]; // minutes before the end
  const UNUSED = [Infinity, 5]; // the same for an unused one: as soon as the list warns, and late

  function notified() {
    try {
      return JSON.parse(localStorage.getItem(NOTIFIED) ?? "{}") ?? {};
    } catch {
      return {};
    }
  }

  // Once each: other tabs share the stored list, and the tag merges simultaneous notifications.
  /** @param {string} id @param {string} event @param {string} title @param {string} body */
  function notify(id, event, title, body) {
    const key = `${id} ${event}`;
    const list = notified();
    if (list[key]) return;
    const now = Date.now();
    const recent = Object.entries(list).filter(([, when]) => now - when < RETENTION);
    localStorage.setItem(NOTIFIED, JSON.stringify({ ...Object.fromEntries(recent), [key]: now }));
    if (!notifies()) return;
    const shown = new Notification(title, { body, tag: key });
    shown.addEventListener("click", () => {
      window.focus();
      shown.close();
    });
  }

  function sessions() {
    const result = new Map();
    for (const row of rows.querySelectorAll("[data-session]")) {
      const times = row.querySelector("[data-own]");
      if (!times) continue;
      const { session, name, state } = row.dataset;
      const { deadline, idle, restarts } = times.dataset;
      result.set(session, { name, state, deadline: Date.parse(deadline), idle: Date.parse(idle), restarts });
    }
    return result;
  }

  /** @param {string} id @param {{ name: string, state: string, deadline: number, idle: number }} session */
  function warn(id, { name, state, deadline, idle }) {
    if (state !== "RUNNING") return;
    near(id, name, deadline, WARNINGS, "before", "ends in",
      "Save what you need into a mounted folder; everything else is deleted with the session.");
    near(id, name, idle, UNUSED, "unused before", "is not used and ends in",
      "Use it, or press “Keep it” on this page, to keep it running.");
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {number} end
   * @param {number[]} warnings
   * @param {string} event
   * @param {string} title
   * @param {string} body
   */
  function near(id, name, end, warnings, event, title, body) {
    if (Number.isNaN(end)) return;
    const left = (end - localTimes.now()) / 60e3;
    // Only the nearest of the due warnings; an extended session is warned about again.
    const due = warnings.filter((minutes) => left <= minutes).pop();
    if (due === undefined || left <= 0) return;
    notify(id, `${due} ${event} ${end}`, `${name} ${title} ${Math.max(1, Math.round(left))} min`, body);
  }

  /** @param {string} id */
  async function ask(id, times = 10) {
    try {
      const answer = await fetch(`/sessions/${id}/outcome`);
      const end = answer.ok ? await answer.json() : {};
      // Why a session did not start is in its log, which is read a moment later.
      if (end.tell && !end.explained && times > 0) setTimeout(ask, 2000, id, times - 1);
      else if (end.tell) notify(id, "ended", `${end.name} has ended`, end.text);
    } catch {
      // The portal is unavailable; the list shows that.
    }
  }

  let before = sessions();
  function check() {
    const now = sessions();
    for (const [id, session] of now) {
      const was = before.get(id)?.state;
      if (was === "PENDING" || was === "STARTING") {
        if (session.state === "RUNNING") notify(id, `runs ${session.restarts}`, `${session.name} is running`, "Its apps can be opened.");
      }
      warn(id, session);
    }
    for (const id of before.keys()) if (!now.has(id)) ask(id);
    before = now;
  }

  document.addEventListener("htmx:afterSwap", ({ detail }) => { if (detail.target === rows) check(); });
  setInterval(() => { for (const [id, session] of sessions()) warn(id, session); }, 15e3);
  check();
}
start();
