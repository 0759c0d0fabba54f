// The fragment, which no server sees: the log-in leads to it as well. Last, since it changes addresses
// that are looked for above.
function start() {
  if (!location.hash) return;
  // A redirect without one keeps that of the form's address.
  for (const form of document.querySelectorAll("form[action^='/login']")) form.action += location.hash;
  for (const link of document.querySelectorAll("a[href^='/login/oidc?next=']:not([target])")) {
    const address = new URL(link.href);
    address.searchParams.set("next", address.searchParams.get("next") + location.hash);
    link.href = String(address);
  }
}
start();
