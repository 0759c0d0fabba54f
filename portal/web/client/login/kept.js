// Holds a form while another tab logs in, and submits it once its owner is logged in.
function start() {
  const form = document.querySelector("form[data-kept-of]");
  if (!form) return;
  const owner = form.dataset.keptOf;
  const problem = form.querySelector("[data-kept-problem]");
  let sent = false;

  async function look() {
    if (sent || document.hidden) return;
    const state = await fetch("/login/state").then((answer) => answer.json()).catch(() => null);
    if (!state?.user || sent) return;
    if (owner && state.user !== owner) {
      problem.textContent = `This browser is now logged in as ${state.user}. What is kept here is ${owner}’s.`;
      problem.hidden = false;
      return;
    }
    sent = true;
    form.submit();
  }

  new BroadcastChannel("slipway-login").addEventListener("message", look);
  addEventListener("focus", look);
  document.addEventListener("visibilitychange", look);
  look();
}
start();
