// Preserves the URL's fragment, which browsers do not send, over the log-in. Runs last, since it changes URLs
// that the other modules look up.
function start() {
  if (!location.hash) return;
  // A redirect without a fragment keeps the fragment of the form's action.
  for (const form of document.querySelectorAll("form[action^='/login']")) form.action += location.hash;
  for (const link of document.querySelectorAll("a[href^='/login/oidc?next=']:not([target])")) {
    const address = new URL(link.href);
    address.searchParams.set("next", address.searchParams.get("next") + location.hash);
    link.href = String(address);
  }
}
start();
