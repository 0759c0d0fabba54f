// What was entered in the wizard, kept in this tab until it is launched: a reload, the Back button or
// another page loses nothing. Values of variables that look secret are not kept, since browsers may
// write a tab's storage to disk.
(() => {
  const wizard = () => document.getElementById("wizard");
  const NOT_KEPT = new Set(["csrf_token", "who", "key", "replace", "confirmed"]);
  const user = wizard().querySelector("[name=who]").value;
  const PREFIX = "slipway-draft ";
  const key = `${PREFIX}${user} ${location.pathname}${location.search}`;
  const TICKED = new Set(["mount", "read_only"]);
  let launched = false;
  let restoring = false;
  let waiting = null; // ticked folders, until the list of folders has been loaded

  function current() {
    const fields = [];
    for (const [name, value] of new FormData(wizard())) {
      if (NOT_KEPT.has(name) || name === "env" || (waiting && TICKED.has(name))) continue;
      fields.push([name, value]);
    }
    if (waiting) fields.push(...waiting.filter(([name]) => TICKED.has(name)));
    const variables = slipwayEnv.stored();
    return {
      fields,
      variables: variables.filter(([name]) => !slipwayEnv.secret(name)),
      secret: variables.map(([name]) => name).filter(slipwayEnv.secret),
    };
  }

  const first = JSON.stringify(current());

  // Whether the draft could be stored.
  function store(draft) {
    try {
      if (draft) sessionStorage.setItem(key, JSON.stringify(draft));
      else sessionStorage.removeItem(key);
      return true;
    } catch {
      return false; // storage is blocked
    }
  }

  function keep() {
    if (launched || restoring) return true;
    const draft = current();
    return store(JSON.stringify(draft) === first ? null : draft);
  }

  function read() {
    try {
      // Drafts of other users of this tab are of no use to anybody.
      for (const name of Object.keys(sessionStorage)) {
        if (name.startsWith(PREFIX) && !name.startsWith(`${PREFIX}${user} `)) sessionStorage.removeItem(name);
      }
      return JSON.parse(sessionStorage.getItem(key));
    } catch {
      return null;
    }
  }

  function tick(fields) {
    const ticked = new Set(fields.map(([name, value]) => `${name} ${value}`));
    const boxes = wizard().querySelectorAll("[type=checkbox][name]:not(:disabled)");
    for (const box of boxes) box.checked = ticked.has(`${box.name} ${box.value}`);
  }

  function restore(draft) {
    restoring = true; // the events below must not store half of it
    for (const [name, value] of draft.fields) {
      for (const field of wizard().querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
        if (field.type === "radio") field.checked ||= field.value === value && !field.disabled;
        else if (field.type !== "checkbox") field.value = value;
        if (field.type !== "radio" || field.checked) field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    tick(draft.fields);
    if (document.querySelector("#folder-list[hx-get]")) waiting = draft.fields;
    if (draft.variables.length || draft.secret.length) {
      const kept = Object.fromEntries(draft.variables);
      wizard().querySelector("[data-env]").value = draft.variables.length ? JSON.stringify(kept) : "";
      slipwayEnv.restore(Object.keys(kept), draft.secret);
    }
    wizard().querySelector("[data-restored]").hidden = false;
    restoring = false;
  }

  document.addEventListener("input", (event) => {
    if (event.target.form === wizard()) keep();
  });
  document.addEventListener("change", (event) => {
    if (event.target.form === wizard()) keep();
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!document.getElementById("folder-list") || document.querySelector("#folder-list[hx-get]")) return;
    if (waiting && event.detail.target.id === "folder-list") tick(waiting);
    waiting = null;
    keep();
  });
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    if (elt !== wizard() || xhr.status !== 204) return;
    launched = true;
    store(null);
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-afresh]")) return;
    launched = true; // nothing is kept any more
    store(null);
    location.reload();
  });
  // Only what a reload would lose: secrets, or everything where storage is blocked.
  addEventListener("beforeunload", (event) => {
    if (launched) return;
    const now = current();
    const lost = now.secret.length > 0 || !keep();
    if (lost && JSON.stringify(now) !== first) event.preventDefault();
  });

  const draft = read();
  // A page with errors shows what was sent, which is newer.
  if (draft && !wizard().querySelector(".steps .wrong, [role=alert]:not([hidden])")) restore(draft);
})();
