// The session's name and the time left in the top bar of JupyterLab 3 and 4 and Notebook 7; extends it.
// A module for their module federation, written by hand: it needs no build and no packages. Its data
// comes from the portal, at a path of this origin that no app can serve; in a server of JupyterHub's, from
// the server (images/toolkit/jupyter/server.py).
(() => {
  const NAME = "@slipway/session";
  const PAGE = JSON.parse(document.getElementById("jupyter-config-data")?.textContent || "{}");
  const HUB = Boolean(PAGE.hubPrefix);
  const ADDRESS = HUB ? `${PAGE.baseUrl}.slipway/session` : "/.slipway/session";
  const EVERY = 15_000; // milliseconds between two requests
  const HIDDEN_EVERY = 60_000;
  const MARKS = [15, 5, 1]; // minutes before the end at which a notice is shown
  const MINUTE = 60_000;
  const OUTPUTS_EVERY = 2000; // milliseconds

  const STYLE = `
.slipway { display: flex; align-items: center; margin-left: auto; padding: 0 8px; overflow: visible !important;
  font-family: var(--jp-ui-font-family, sans-serif); font-size: var(--jp-ui-font-size1, 13px); }
.slipway-chip { height: 22px; padding: 0 10px; border: 1px solid var(--jp-border-color1, #bdbdbd); border-radius: 99px;
  background: transparent; color: var(--jp-ui-font-color1, #222); font: inherit; white-space: nowrap; cursor: pointer; }
.slipway-chip:hover { background: var(--jp-layout-color2, #eee); }
.slipway-chip.soon { background: #fbefd0; border-color: #7a5000; color: #5e3d00; font-weight: 600; }
.slipway-chip.over { background: #fce7e4; border-color: #a3261c; color: #a3261c; font-weight: 600; }
.slipway-chip:focus-visible, .slipway-box :focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.slipway-box { position: fixed; z-index: 10000; top: 40px; right: 12px; width: 21rem; max-width: calc(100vw - 24px);
  box-sizing: border-box; padding: 14px 16px; border: 1px solid var(--jp-border-color1, #bdbdbd); border-radius: 8px;
  background: var(--jp-layout-color1, #fff); color: var(--jp-ui-font-color1, #222); box-shadow: 0 6px 24px rgb(0 0 0 / 22%);
  font: 13px/1.45 var(--jp-ui-font-family, sans-serif); overflow-wrap: anywhere; }
.slipway-box[hidden], .slipway-box:is(dialog):not([open]) { display: none; }
.slipway-box:is(dialog) { left: auto; bottom: auto; margin: 0; }
.slipway-box::backdrop { background: transparent; }
.slipway-box p { margin: 0 0 8px; }
.slipway-box strong { font-weight: 600; }
.slipway-box a[href] { color: var(--jp-content-link-color, #1565c0); text-decoration: underline; }
.slipway-buttons { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-top: 10px; }
.slipway-buttons button { padding: 4px 10px; border: 1px solid var(--jp-border-color1, #bdbdbd); border-radius: 6px;
  background: var(--jp-layout-color1, #fff); color: inherit; font: inherit; cursor: pointer; }
.slipway-buttons button:hover:enabled { background: var(--jp-layout-color2, #eee); }
.slipway-buttons button:disabled { opacity: .6; cursor: default; }
.slipway-problem { color: #a3261c; }
[data-jp-theme-light="false"] .slipway-problem { color: #ff9d90; }
`;

  // JupyterHub's servers want their XSRF token with every request that a script sends.
  function marks() {
    const [, value] = document.cookie.match(/(?:^|;\s*)_xsrf=([^;]*)/) ?? [];
    return HUB && value ? { "X-XSRFToken": decodeURIComponent(value) } : {};
  }

  // The newest of the versions that the page shares.
  async function shared(scope, name) {
    const [version] = Object.values(scope[name] ?? {}).slice(-1);
    return (await version.get())();
  }

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function left(milliseconds) {
    const minutes = Math.floor(Math.max(milliseconds, 0) / MINUTE);
    if (minutes < 1) return "less than 1 min left";
    const hours = Math.floor(minutes / 60);
    const rest = minutes % 60;
    if (hours >= 10 || (hours && !rest)) return `${hours} h left`;
    return hours ? `${hours} h ${rest} min left` : `${rest} min left`;
  }

  const LIVE = "live";
  const OUT = "out"; // this browser may no longer ask about the session, which goes on
  const OVER = "over";

  class Session {
    // `recovered` is called when the server can be used again.
    constructor(node, recovered) {
      this.recovered = recovered;
      this.data = null;
      this.state = LIVE;
      this.closeDialog = () => {};
      this.ahead = 0; // milliseconds by which this clock is ahead of the portal's
      this.mark = null;
      this.kill = undefined;
      this.chip = element("button", { type: "button", className: "slipway-chip", hidden: true });
      this.chip.setAttribute("aria-expanded", "false");
      this.chip.addEventListener("click", () => this.toggle());
      this.box = element("div", { className: "slipway-box", hidden: true });
      this.box.setAttribute("role", "dialog");
      this.box.setAttribute("aria-label", "This session");
      this.box.addEventListener("keydown", (event) => {
        event.stopPropagation(); // keys here are not commands of the notebook
        if (event.key === "Escape") this.close();
      });
      this.news = element("div", { className: "slipway-box", hidden: true });
      this.news.setAttribute("role", "alert");
      node.append(this.chip);
      document.body.append(this.box, this.news);
      document.addEventListener("visibilitychange", () => document.hidden || this.ask());
      setInterval(() => this.draw(), 5000);
      this.ask();
    }

    async ask() {
      clearTimeout(this.timer);
      try {
        const address = HUB || !this.data ? ADDRESS : `${ADDRESS}?session=${this.data.id}`;
        const response = await fetch(address, { redirect: HUB ? "manual" : "error", cache: "no-store", headers: marks() });
        if (response.ok) this.take(await response.json());
        else if (response.status === 401 || (HUB && response.status === 403)) this.leave(OUT);
        // Where the server was, JupyterHub redirects to its own pages.
        else if (response.status === 410 || response.type === "opaqueredirect") this.leave(OVER);
      } catch {
        // The portal is away for a moment: what is shown stays.
      }
      if (this.data?.ending) return; // the portal itself says that it is over
      const seldom = document.hidden || this.state === OVER;
      this.timer = setTimeout(() => this.ask(), seldom ? HIDDEN_EVERY : EVERY);
    }

    take(data) {
      if (this.data && data.id !== this.data.id) { // another session has this address now
        this.leave(OVER);
        return;
      }
      this.data = data;
      this.ahead = Date.now() - Date.parse(data.now);
      if (data.killed !== this.kill) {
        // What happened before this page was opened is not news.
        if (this.kill !== undefined && data.killed) this.tell(data.killed_text, null);
        this.kill = data.killed;
      }
      if (data.ending) {
        this.leave(OVER);
        return;
      }
      if (this.state !== LIVE) this.recover();
      this.draw();
    }

    get remaining() {
      return this.data?.ends ? Date.parse(this.data.ends) - (Date.now() - this.ahead) : null;
    }

    draw() {
      if (!this.data || this.state !== LIVE) return;
      const { name, unused } = this.data;
      const remaining = this.remaining;
      const soon = remaining !== null && remaining <= MARKS[0] * MINUTE;
      this.chip.hidden = false;
      const text = remaining === null ? name : `${name} · ${left(remaining)}`;
      if (this.chip.textContent !== text) this.chip.textContent = text;
      this.chip.className = soon ? "slipway-chip soon" : "slipway-chip";
      this.chip.title = "This session: time left, what is kept, extend";
      if (remaining === null || !soon) {
        this.mark = null;
        return;
      }
      const mark = MARKS.filter((minutes) => remaining <= minutes * MINUTE).pop();
      if (this.mark === null || mark < this.mark) {
        this.mark = mark;
        this.tell(`${name} ends in ${left(remaining).replace(" left", "")}${unused ? " unless you use it" : ""}.`, this.data.kept);
      }
    }

    content(title, text) {
      const parts = [element("p", {}, element("strong", { textContent: title }))];
      if (text) parts.push(element("p", { textContent: text }));
      parts.push(element("p", { className: "slipway-problem", hidden: true }));
      return parts;
    }

    extensions() {
      return (this.data?.extend ?? []).map(({ minutes, label }) => {
        const button = element("button", { type: "button", textContent: label });
        button.addEventListener("click", () => this.extend(minutes, button));
        return button;
      });
    }

    toggle() {
      if (!this.box.hidden) return this.close();
      if (this.state !== LIVE) return this.showDialog();
      this.news.hidden = true;
      const { name, ends, kept, unused, sessions } = this.data;
      const time = ends && new Date(Date.parse(ends) + this.ahead).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      const title = ends ? `${name} ends at ${time}${unused ? " unless you use it" : ""}` : name;
      const link = element("a", { href: sessions, target: "_blank", rel: "noopener", textContent: "Sessions" });
      const buttons = element("div", { className: "slipway-buttons" }, ...this.extensions(), link);
      this.box.replaceChildren(...this.content(title, kept), buttons);
      this.box.hidden = false;
      this.chip.setAttribute("aria-expanded", "true");
      (this.box.querySelector("button") ?? link).focus();
      return undefined;
    }

    close() {
      this.box.hidden = true;
      this.chip.setAttribute("aria-expanded", "false");
      this.chip.focus();
    }

    // A notice that does not take the focus.
    tell(title, text) {
      const close = element("button", { type: "button", textContent: "Dismiss" });
      close.addEventListener("click", () => { this.news.hidden = true; });
      const buttons = element("div", { className: "slipway-buttons" }, ...(text === null ? [] : this.extensions()), close);
      this.news.replaceChildren(...this.content(title, text), buttons);
      this.news.hidden = false;
    }

    async extend(minutes, button) {
      const box = button.closest(".slipway-box");
      const problem = box.querySelector(".slipway-problem");
      problem.hidden = true;
      button.disabled = true; // a second click would extend twice
      try {
        const response = await fetch(`${ADDRESS}/extend`, {
          method: "POST",
          redirect: "error",
          headers: { "Content-Type": "application/json", "X-Slipway": "extend" },
          body: JSON.stringify({ minutes }),
        });
        const answer = await response.json();
        if (!response.ok) throw new Error(answer.detail);
        this.take(answer);
        box.hidden = true;
        this.close();
      } catch (error) {
        problem.textContent = error instanceof TypeError ? "The portal does not answer. Try again." : error.message;
        problem.hidden = false;
      }
      button.disabled = false;
    }

    recover() {
      this.state = LIVE;
      this.mark = null;
      this.closeDialog();
      this.recovered();
    }

    leave(state) {
      if (this.state === state || !this.data) return;
      this.state = state;
      this.chip.hidden = false;
      this.chip.className = "slipway-chip over";
      this.chip.textContent = state === OUT ? "Logged out" : `${this.data.name} has ended`;
      this.chip.title = "";
      this.box.hidden = true;
      this.news.hidden = true;
      this.showDialog();
    }

    // The links open a new tab: this one may have what is not saved yet.
    words() {
      const { name } = this.data;
      if (this.state === OUT) {
        return {
          title: "This window is logged out",
          text: `That does not end ${name}: its kernels go on, but nothing can be saved here until you log in again. This window then goes on by itself.`,
          link: "Log in again",
        };
      }
      return {
        title: `${name} has ended`,
        text: `${this.data.why ? `${this.data.why} ` : ""}Kernels and terminals have stopped, and nothing can be saved here any more. Copy what you need from this window before you close it.`,
        link: "What happened, and launch again",
      };
    }

    showDialog() {
      this.closeDialog();
      const { title, text, link } = this.words();
      const leads = element("a", { href: this.data.ended, target: "_blank", rel: "noopener", textContent: link });
      const close = element("button", { type: "button", textContent: "Dismiss" });
      const buttons = element("div", { className: "slipway-buttons" }, leads, close);
      const box = element("dialog", { className: "slipway-box" }, ...this.content(title, text), buttons);
      box.setAttribute("aria-label", title);
      document.body.append(box);
      box.showModal();
      // Jupyter's own dialogs, about a server that does not answer, would cover it.
      const above = new MutationObserver((changes) => {
        const others = changes.some((change) => [...change.addedNodes].some((node) => node !== box));
        if (!others || !box.open) return;
        box.close();
        box.showModal();
      });
      above.observe(document.body, { childList: true });
      this.closeDialog = () => {
        above.disconnect();
        box.remove();
        this.closeDialog = () => {};
      };
      close.addEventListener("click", () => this.closeDialog());
      box.addEventListener("close", () => box.open || this.closeDialog()); // open again: it was raised
    }
  }

  // Kernels' connections, which Jupyter tries to restore for some minutes only.
  function reconnect(app) {
    for (const widget of app.shell.widgets("main")) {
      const kernel = widget.sessionContext?.session?.kernel;
      if (kernel && kernel.connectionStatus !== "connected") kernel.reconnect().catch(() => {});
    }
  }

  class DisposableNothing {
    isDisposed = false;

    dispose() {
      this.isDisposed = true;
    }
  }

  // What cells print that another window runs, which is away: until they end, or this window runs them itself.
  async function follow(panel, context) {
    const shown = new Map(); // by cell
    for (;;) {
      const own = panel.sessionContext.session?.kernel?.clientId;
      const address = `${PAGE.baseUrl}api/slipway/outputs?path=${encodeURIComponent(context.path)}`;
      const response = await fetch(address, { cache: "no-store", headers: marks() });
      if (!response.ok || panel.isDisposed) return;
      const { executions } = await response.json();
      const others = executions.filter(({ client }) => client !== own);
      for (const execution of others) {
        const text = JSON.stringify(execution);
        if (shown.get(execution.cell) !== text) fill(panel, execution);
        shown.set(execution.cell, text);
      }
      if (!others.some(({ running }) => running)) return;
      await new Promise((done) => { setTimeout(done, OUTPUTS_EVERY); });
      if (panel.isDisposed) return;
    }
  }

  function fill(panel, { cell, code, count, running, outputs }) {
    const codes = panel.content.widgets.filter(({ model }) => model.type === "code");
    const same = codes.filter(({ model }) => sourceOf(model) === code);
    const widget = codes.find(({ model }) => model.id === cell) ?? (same.length === 1 ? same[0] : null);
    if (!widget || (!count && !running)) return;
    if (JSON.stringify(widget.model.outputs.toJSON()) !== JSON.stringify(outputs)) widget.model.outputs.fromJSON(outputs);
    if (!running) widget.model.executionCount = count;
    widget.setPrompt(running ? "*" : `${count}`);
  }

  const sourceOf = (model) => model.sharedModel?.getSource?.() ?? model.value.text;

  const plugin = (widgets) => ({
    id: `${NAME}:plugin`,
    description: "Shows the session's name and the time left, and extends it.",
    autoStart: true,
    activate(app) {
      document.head.append(element("style", { textContent: STYLE }));
      const widget = new widgets.Widget();
      widget.id = "slipway-session";
      widget.addClass("slipway");
      app.shell.add(widget, "top", { rank: 20000 });
      new Session(widget.node, () => reconnect(app));
      app.docRegistry.addWidgetExtension("Notebook", {
        createNew(panel, context) {
          context.ready
            .then(() => panel.sessionContext.ready)
            .then(() => follow(panel, context))
            .catch(() => {}); // without it, the notebook is as Jupyter has it
          return new DisposableNothing();
        },
      });
    },
  });

  let scope = null;
  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB[NAME] = {
    init(found) {
      scope = found;
    },
    async get(module) {
      if (module !== "./extension") throw new Error(`${NAME} has no module ${module}`);
      const widgets = await shared(scope, "@lumino/widgets");
      return () => ({ __esModule: true, default: plugin(widgets) });
    },
  };
})();
