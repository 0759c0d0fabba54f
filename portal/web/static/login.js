// Shows that the password is being checked, which takes seconds if it is wrong.
(() => {
  const form = document.querySelector("form[action='/login']");
  const button = form?.querySelector("button");
  const status = document.getElementById("login-status");
  if (!button) return;
  const word = button.querySelector("span");
  const usual = word.textContent;

  form.addEventListener("submit", () => {
    // Afterwards: a disabled button would not submit.
    setTimeout(() => {
      button.disabled = true;
      button.setAttribute("aria-busy", "true");
      word.textContent = "Checking…";
      status.textContent = "Your password is being checked.";
    });
  });
  // Back in the history, the page may come from memory.
  addEventListener("pageshow", () => {
    button.disabled = false;
    button.removeAttribute("aria-busy");
    word.textContent = usual;
    status.textContent = "";
  });
})();

// A form that is kept while another tab logs in: goes on once its owner is logged in.
(() => {
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
})();

// The fragment, which no server sees: the log-in leads to it as well. Last, since it changes addresses
// that are looked for above.
(() => {
  if (!location.hash) return;
  // A redirect without one keeps that of the form's address.
  for (const form of document.querySelectorAll("form[action^='/login']")) form.action += location.hash;
  for (const link of document.querySelectorAll("a[href^='/login/oidc?next=']:not([target])")) {
    const address = new URL(link.href);
    address.searchParams.set("next", address.searchParams.get("next") + location.hash);
    link.href = address;
  }
})();
