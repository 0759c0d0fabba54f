// Polls with htmx: requests are conditional, fewer while the page is hidden or the portal slow, and a
// lost connection is shown. `address`, if set, computes the URL of each request; `notifies` says whether
// the page shows notifications while it is hidden.
import htmx from "htmx.org";
import { Pace } from "./pace.js";
import * as times from "./times.js";

/** @param {PageElement} element @param {() => string} [address] @param {() => boolean} [notifies] */
export function poll(element, address, notifies = () => false) {
  const messages = [...document.querySelectorAll("[data-poll-message]")];
  const pace = new Pace();
  let sent = 0;
  /** @type {number | undefined} */
  let timer;

  const isPoll = (/** @type {HtmxEvent} */ event) => event.detail.elt === element;
  const refresh = () => htmx.trigger(element, "refresh");

  /** @param {XMLHttpRequest} answer  status 0: there was none */
  function note(answer) {
    const wait = Number(answer.getResponseHeader("Retry-After")) || 0;
    if (answer.getResponseHeader("X-Slipway-Busy")) pace.refused("slow", wait);
    else if (answer.status === 429) pace.refused("limited", wait);
    else if (answer.status >= 200 && answer.status < 400) pace.answered(performance.now() - sent);
    else pace.failed();
    for (const message of messages) message.hidden = message.dataset.pollMessage !== pace.message;
  }

  function schedule() {
    clearTimeout(timer);
    timer = setTimeout(refresh, pace.next(document.hidden, notifies()));
  }

  document.addEventListener("htmx:configRequest", (event) => {
    if (!isPoll(event)) return;
    if (address) event.detail.path = address();
    event.detail.headers["If-None-Match"] = element.dataset.mark;
    if (!document.hidden) event.detail.headers["Slipway-Visible"] = "1";
    // Nobody misses what only depends on the time (web/http/unchanged.py).
    if (document.hidden && !notifies()) event.detail.headers["Slipway-Hidden"] = "yes";
  });
  document.addEventListener("htmx:beforeSend", (event) => {
    if (isPoll(event)) sent = performance.now();
  });
  // Also without an answer, and before the events that tell why.
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!isPoll(event)) return;
    note(event.detail.xhr);
    schedule();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) schedule();
    else refresh();
  });
  // A page from the back/forward cache is outdated, and so is its idempotency key.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { xhr } = event.detail;
    if (!isPoll(event) || xhr.status >= 400) return;
    times.setServerTime(xhr.getResponseHeader("Date"));
    const mark = xhr.getResponseHeader("ETag");
    if (mark) element.dataset.mark = mark.replaceAll('"', "");
  });
  schedule();
}
