// The app launcher: in a dialog of the Sessions page, or on its own page. It renews itself while it
// is open; what stands in its fields stays.
(() => {
  const EVERY = 2000; // milliseconds between two looks
  const SOON = 400; // after a click has started something
  const dialog = document.getElementById("apps");
  const shown = new Map(); // what the server last said of each part
  let timer;

  const pad = () => document.querySelector("[data-pad]");
  const parts = (root) => [...root.querySelectorAll("[data-live]")];

  function say(text) {
    const place = pad()?.querySelector("[data-announce]");
    if (place) place.textContent = text;
  }

  function remember(root) {
    shown.clear();
    for (const part of parts(root)) shown.set(part.id, part.innerHTML);
  }

  async function load(address, options = {}) {
    const answer = await fetch(address, { ...options, headers: { "HX-Request": "true" } });
    const elsewhere = answer.headers.get("HX-Redirect"); // the login is over
    if (elsewhere) location.href = elsewhere;
    if (!answer.ok) throw new Error(answer.status);
    return new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-pad]");
  }

  // Only what has changed is replaced, and the keyboard stays where it was.
  function renew(fresh) {
    const now = parts(fresh);
    if (now.length !== shown.size || now.some((part) => !shown.has(part.id))) {
      remember(fresh);
      replace(pad(), fresh);
    }
    for (const part of now) {
      const place = document.getElementById(part.id);
      if (!place || shown.get(part.id) === part.innerHTML) continue;
      const held = place.contains(document.activeElement) ? document.activeElement : null;
      const open = new Set([...place.querySelectorAll("details[open]")].map((detail) => detail.id));
      shown.set(part.id, part.innerHTML);
      place.replaceChildren(...part.cloneNode(true).childNodes);
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      tell(part);
      if (held) (document.getElementById(held.id) ?? place.closest("[data-app]")?.querySelector("[data-open] .btn"))?.focus();
    }
    slipwayTimes.refresh();
  }

  // An app was added or removed: everything is replaced except what was entered and unfolded.
  function replace(old, fresh) {
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    const entered = [...old.querySelectorAll("[data-open] input[id]")].filter(
      (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked,
    );
    const unfolded = [...old.querySelectorAll("details[open]")].map((detail) => detail.id);
    old.replaceWith(fresh);
    for (const field of entered) {
      const now = document.getElementById(field.id);
      if (!now) continue;
      now.value = field.value;
      now.checked = field.checked;
    }
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus();
  }

  // A card's state in a sentence, for those who do not see it change.
  function tell(part) {
    const word = part.id.startsWith("chip-") && part.textContent.trim();
    const title = document.getElementById(part.id)?.closest("h3")?.firstChild.textContent.trim();
    if (word && title) say(`${title}: ${word}`);
  }

  async function look() {
    clearTimeout(timer);
    const now = pad();
    if (!now || (dialog && !dialog.open)) return;
    try {
      if (!document.hidden) {
        const fresh = await load(now.dataset.pad);
        if (pad() === now) renew(fresh);
      }
    } catch {
      // The portal is away for a moment; what is shown stays.
    }
    clearTimeout(timer);
    timer = setTimeout(look, EVERY);
  }

  function lookSoon() {
    clearTimeout(timer);
    timer = setTimeout(look, SOON);
  }

  async function show(address) {
    let fresh;
    try {
      fresh = await load(address);
    } catch {
      location.href = address; // the page says what is wrong
      return;
    }
    remember(fresh);
    dialog.querySelector("[data-content]").replaceChildren(fresh);
    slipwayTimes.refresh();
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("[data-open] .btn")?.focus();
    lookSoon();
  }

  async function act(form, button) {
    const body = new FormData(form);
    button.disabled = true; // once is enough
    try {
      const fresh = await load(button.formAction, { method: "POST", body });
      renew(fresh);
      say(button.dataset.said);
    } catch {
      button.disabled = false;
      say("That did not work. Try again.");
    }
  }

  async function copy(button) {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      say("Copied.");
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), EVERY);
    } catch {
      say("It is selected: copy it with your keyboard."); // plain http, or no permission
    }
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("a[data-apps], [data-apps-close], [data-copy]");
    if (!target) {
      if (event.target === dialog) dialog.close(); // beside it
      return;
    }
    if (target.dataset.copy) return void copy(target);
    if ("appsClose" in target.dataset) return dialog.close();
    if (!dialog || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    show(target.href);
  });

  document.addEventListener("submit", (event) => {
    if (event.target.id === "apps-act") {
      event.preventDefault();
      act(event.target, event.submitter);
    } else if ("open" in event.target.dataset && event.target.closest("[data-pad]")) {
      const publish = event.target.elements.public?.checked;
      // The new window is what is wanted now; only who opens it to everybody needs the address.
      if (dialog?.open && !publish) dialog.close();
      // A port is tried once; the answer stays, as another one would start the app anew.
      const port = event.target.elements.preferred_port;
      if (port) setTimeout(() => { port.value = ""; }, 0);
      lookSoon();
    }
  });

  if (!dialog && pad()) {
    remember(pad());
    lookSoon();
  }
})();
