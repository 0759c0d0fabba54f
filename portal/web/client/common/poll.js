// Polls with htmx: requests are conditional, fewer while the page is hidden or the portal slow, and a
// lost connection is shown. `address`, if set, computes the URL of each request.
import htmx from "htmx.org";
import { Pace } from "./pace.js";
import * as times from "./times.js";

/** @param {XMLHttpRequest} answer */
const isBusy = (answer) => answer.status === 429 || answer.getResponseHeader("X-Slipway-Busy") !== null;

/** @param {PageElement} element @param {() => string} [address] */
export function poll(element, address) {
  const link = document.getElementById("link");
  const slow = document.getElementById("slow");
  const pace = new Pace();
  let failures = 0;
  let sent = 0;
  /** @type {number | undefined} */
  let timer;

  const isPoll = (/** @type {HtmxEvent} */ event) => event.detail.elt === element;
  const refresh = () => htmx.trigger(element, "refresh");

  function schedule() {
    clearTimeout(timer);
    timer = setTimeout(refresh, pace.next(document.hidden));
  }

  document.addEventListener("htmx:configRequest", (event) => {
    if (!isPoll(event)) return;
    if (address) event.detail.path = address();
    event.detail.headers["If-None-Match"] = element.dataset.mark;
  });
  document.addEventListener("htmx:beforeSend", (event) => {
    if (isPoll(event)) sent = performance.now();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!isPoll(event)) return;
    const { xhr } = event.detail;
    if (xhr.status >= 200 && xhr.status < 400) pace.answered(performance.now() - sent);
    else pace.refused(Number(xhr.getResponseHeader("Retry-After")) || 0);
    slow.hidden = !pace.slow || failures > 1;
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

  // A lost connection is shown after the second failure in a row, until a poll succeeds. A refusal since
  // there is too much to do is shown as slow.
  for (const kind of ["sendError", "timeout", "responseError"]) {
    document.addEventListener(`htmx:${kind}`, (event) => {
      if (!isPoll(event) || isBusy(event.detail.xhr)) return;
      failures += 1;
      link.hidden = failures < 2;
    });
  }
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { xhr } = event.detail;
    if (!isPoll(event) || xhr.status >= 400) return;
    failures = 0;
    link.hidden = true;
    times.setServerTime(xhr.getResponseHeader("Date"));
    const mark = xhr.getResponseHeader("ETag");
    if (mark) element.dataset.mark = mark.replaceAll('"', "");
  });
  schedule();
}
