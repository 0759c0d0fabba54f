// Polls with htmx: requests are conditional, fewer while the page is hidden, and a lost connection is
// shown. The element triggers "refresh"; `address`, if set, computes the URL of each request.
import htmx from "htmx.org";
import * as times from "./times.js";

/** @param {PageElement} element @param {() => string} [address] */
export function poll(element, address) {
  const link = document.getElementById("link");
  const HIDDEN_EVERY = 5; // a hidden page polls less often
  let skipped = 0;
  let failures = 0;

  const isPoll = (/** @type {HtmxEvent} */ event) => event.detail.elt === element;

  document.addEventListener("htmx:configRequest", (event) => {
    if (!isPoll(event)) return;
    if (address) event.detail.path = address();
    event.detail.headers["If-None-Match"] = element.dataset.mark;
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isPoll(event) || !document.hidden) return;
    skipped = (skipped + 1) % HIDDEN_EVERY;
    if (skipped) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) htmx.trigger(element, "refresh");
  });
  // A page from the back/forward cache is outdated, and so is its idempotency key.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  // A lost connection is shown after the second failure in a row, until a poll succeeds.
  for (const kind of ["sendError", "timeout", "responseError"]) {
    document.addEventListener(`htmx:${kind}`, (event) => {
      if (!isPoll(event)) return;
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
}
