// The waiting page: asks how far the app has come, and loads it the moment it is there.
(() => {
  const wait = document.getElementById("wait");
  const STEPS = ["queued", "starting", "opening", "ready"];
  const COUNT = "slipway-reloads";
  const MOST = 5;
  const FAST = 400; // milliseconds between questions, for the first half minute
  const SLOW = 2000;
  const since = Date.now();

  function show({ step, message, advice, log }) {
    const stuck = step === "failed" || step === "over";
    const reached = stuck ? Math.max(0, STEPS.indexOf(wait.dataset.step)) : STEPS.indexOf(step);
    if (!stuck) wait.dataset.step = step;
    for (const item of wait.querySelectorAll("[data-for]")) {
      const place = STEPS.indexOf(item.dataset.for);
      const here = place === reached;
      item.className = place < reached ? "done" : here ? (stuck ? "stuck" : "now") : "";
      item.toggleAttribute("aria-current", here);
      if (here) item.setAttribute("aria-current", "step");
    }
    const text = wait.querySelector("[data-message]");
    if (text.textContent !== message) text.textContent = message;
    wait.querySelector("[data-advice]").textContent = advice;
    const tail = wait.querySelector("[data-log]");
    tail.textContent = log;
    tail.hidden = !log;
    wait.querySelector("[data-again]").hidden = !stuck;
  }

  function enter() {
    const count = Number(sessionStorage.getItem(COUNT) ?? 0) + 1;
    if (count > MOST) {
      sessionStorage.removeItem(COUNT);
      show({ step: "failed", message: "The app is ready, but your browser keeps arriving here.",
        advice: "Open it again; if that does not help, tell the administrators.", log: "" });
      return;
    }
    sessionStorage.setItem(COUNT, String(count));
    // The proxy learns the way a moment after the portal; later reloads give it more time.
    setTimeout(() => location.reload(), (count - 1) * 500);
  }

  async function ask() {
    let now = null;
    try {
      const answer = await fetch("/.slipway/status", { redirect: "error" });
      if (answer.status === 401 || answer.status === 404) {
        location.reload(); // the portal decides whether this browser may come in again
        return;
      }
      if (answer.ok) now = await answer.json();
    } catch {
      // The portal is away for a moment; what is shown stays.
    }
    if (now) show(now);
    if (now?.step === "ready") return enter();
    if (now?.step === "over") return undefined;
    setTimeout(ask, Date.now() - since < 30_000 ? FAST : SLOW);
    return undefined;
  }

  if (wait.dataset.step !== "ready") sessionStorage.removeItem(COUNT);
  show({
    step: wait.dataset.step,
    message: wait.querySelector("[data-message]").textContent,
    advice: wait.querySelector("[data-advice]").textContent,
    log: wait.querySelector("[data-log]").textContent,
  });
  if (wait.dataset.step === "ready") enter();
  else ask();
})();
