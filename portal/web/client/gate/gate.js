// The waiting page: polls the app's progress, and loads the app as soon as it is ready.
const wait = document.getElementById("wait");
const STEPS = ["queued", "starting", "opening", "ready"];
const COUNT = "slipway-reloads";
const MOST = 5; // reloads
const FAST = 400; // milliseconds between two polls, for the first half minute
const SLOW = 2000;
const since = Date.now();

let began = Date.now(); // when the current step began, by the browser's clock
/** @type {string | null} */
let shown = null;

/** @param {{ step: string, message: string, advice: string, log: string, waited?: number }} progress */
function show({ step, message, advice, log, waited }) {
  const stuck = step === "failed" || step === "over";
  if (step !== shown) began = Date.now() - (waited ?? 0) * 1000;
  shown = step;
  if (!stuck) wait.dataset.step = step;
  // An app fails while it starts or later; a session may end at any step.
  const reached = step === "failed" ? STEPS.indexOf("opening") : Math.max(0, STEPS.indexOf(wait.dataset.step));
  for (const item of wait.querySelectorAll("li[data-for]")) {
    const index = STEPS.indexOf(item.dataset.for);
    const isCurrent = index === reached;
    item.className = index < reached ? "done" : isCurrent ? (stuck ? "stuck" : "now") : "";
    item.toggleAttribute("aria-current", isCurrent);
    if (isCurrent) item.setAttribute("aria-current", "step");
  }
  put("[data-message]", message);
  put("[data-advice]", advice);
  put("[data-log] pre", log);
  wait.querySelector("[data-log]")?.toggleAttribute("hidden", !log);
  // Its options can be changed as soon as it is slow.
  wait.querySelector("[data-trouble]")?.toggleAttribute("hidden", !(step === "failed" || (step === "opening" && log)));
  for (const link of wait.querySelectorAll("a[data-for]")) link.hidden = link.dataset.for !== step;
  tick();
}

// Writes only changes: screen readers announce every write.
/** @param {string} selector @param {string} text */
function put(selector, text) {
  const element = wait.querySelector(selector);
  if (element && element.textContent !== text) element.textContent = text;
}

// Shows how long the current step has lasted.
function tick() {
  for (const old of wait.querySelectorAll(".waited")) old.remove();
  const step = wait.querySelector("li.now");
  if (!step || shown === "ready") return;
  const seconds = Math.max(0, Math.floor((Date.now() - began) / 1000));
  const mark = document.createElement("span");
  mark.className = "waited";
  mark.setAttribute("aria-hidden", "true"); // must not be announced every second
  mark.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  step.append(mark);
}
setInterval(tick, 1000);

function enter() {
  const count = Number(sessionStorage.getItem(COUNT) ?? 0) + 1;
  if (count > MOST) {
    sessionStorage.removeItem(COUNT);
    show({ step: "failed", message: "The app is ready, but your browser keeps being sent back to this page.",
      advice: "Open it again; if that does not help, tell the administrators.", log: "" });
    return;
  }
  sessionStorage.setItem(COUNT, String(count));
  // The proxy gets the route a moment after the portal; later reloads give it more time.
  setTimeout(() => location.reload(), (count - 1) * 500);
}

async function poll() {
  let now = null;
  try {
    const response = await fetch("/.slipway/status", { redirect: "error" });
    if (response.status === 401 || response.status === 404) {
      location.reload(); // redirects to the portal, which may grant access again
      return;
    }
    if (response.ok) now = await response.json();
  } catch {
    // The portal is temporarily unavailable; keep the current content.
  }
  if (now) show(now);
  if (now?.step === "ready") return enter();
  setTimeout(poll, Date.now() - since < 30_000 ? FAST : SLOW);
  return undefined;
}

if (wait.dataset.step !== "ready") sessionStorage.removeItem(COUNT);
const text = (/** @type {string} */ selector) => wait.querySelector(selector)?.textContent ?? "";
show({
  step: wait.dataset.step,
  message: text("[data-message]"),
  advice: text("[data-advice]"),
  log: text("[data-log] pre"),
  waited: Number(wait.dataset.waited),
});
if (wait.dataset.step === "ready") enter();
else poll();
