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

  class Session {
    constructor(node) {
      this.data = null;
      this.over = false;
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
        // Where the server was, JupyterHub redirects to its own pages.
        const response = await fetch(ADDRESS, { redirect: HUB ? "manual" : "error", cache: "no-store", headers: marks() });
        if (response.type === "opaqueredirect") this.end();
        else if (response.ok) this.take(await response.json());
        else if (response.status === 401 || response.status === 404) this.end();
      } catch {
        // The portal is away for a moment: what is shown stays.
      }
      if (!this.over) this.timer = setTimeout(() => this.ask(), document.hidden ? HIDDEN_EVERY : EVERY);
    }

    take(data) {
      this.data = data;
      this.ahead = Date.now() - Date.parse(data.now);
      if (data.killed !== this.kill) {
        // What happened before this page was opened is not news.
        if (this.kill !== undefined && data.killed) this.tell(data.killed_text, null);
        this.kill = data.killed;
      }
      if (data.ending) this.end();
      else this.draw();
    }

    get remaining() {
      return this.data?.ends ? Date.parse(this.data.ends) - (Date.now() - this.ahead) : null;
    }

    draw() {
      if (!this.data || this.over) return;
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
      if (this.over) return location.assign(this.data.ended);
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

    end() {
      if (this.over || !this.data) return;
      this.over = true;
      this.chip.hidden = false;
      this.chip.className = "slipway-chip over";
      this.chip.textContent = `${this.data.name} has ended`;
      this.box.hidden = true;
      const text = "Kernels and terminals have stopped, and nothing can be saved here any more.";
      const link = element("a", { href: this.data.ended, textContent: "What happened, and launch again" });
      const close = element("button", { type: "button", textContent: "Dismiss" });
      const buttons = element("div", { className: "slipway-buttons" }, link, close);
      const box = element("dialog", { className: "slipway-box" }, ...this.content(`${this.data.name} has ended`, text), buttons);
      box.setAttribute("aria-label", `${this.data.name} has ended`);
      this.news.hidden = true;
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
      close.addEventListener("click", () => {
        above.disconnect();
        box.close();
      });
    }
  }

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
      new Session(widget.node);
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
