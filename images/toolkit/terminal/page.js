// What ttyd's page lacks: clipboard, colour schemes, help, keys for touch screens, and messages when the
// connection is slow or lost. touch.js, which comes before this, has the keys and swipes of touch screens.
(() => {
  "use strict";
  const MAC = /^(Mac|iP)/.test(navigator.platform);
  const THEMES = {
    light: {
      background: "#ffffff", foreground: "#13242d", cursor: "#0b6478", selectionBackground: "#bfdfe6",
      black: "#13242d", red: "#a3261c", green: "#0f6b45", yellow: "#7a5000",
      blue: "#0a5a8a", magenta: "#7b3a94", cyan: "#0b6478", white: "#d8e0e4",
      brightBlack: "#50626b", brightRed: "#c2362b", brightGreen: "#15804f", brightYellow: "#8f5f00",
      brightBlue: "#1470a8", brightMagenta: "#9448b0", brightCyan: "#0f7d95", brightWhite: "#f6f8f9",
    },
    dark: {
      background: "#0b151b", foreground: "#e3edf1", cursor: "#67c5d4", selectionBackground: "#2b5566",
      black: "#1c2c35", red: "#ff8f80", green: "#7fd8aa", yellow: "#f0c674",
      blue: "#8cc8f2", magenta: "#d3a8ec", cyan: "#67c5d4", white: "#c7d5db",
      brightBlack: "#859aa4", brightRed: "#ffb3a8", brightGreen: "#a5e8c4", brightYellow: "#f7daa0",
      brightBlue: "#b3dbf8", brightMagenta: "#e6c8f6", brightCyan: "#9adfe9", brightWhite: "#ffffff",
    },
  };
  // Most monospaced characters are 0.6 em wide, a whole number of pixels at 15. A fraction would be
  // rounded down after the columns were counted, and leave the right edge empty.
  const OPTIONS = {
    fontSize: 15,
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace',
    scrollback: 0, // tmux keeps it
    minimumContrastRatio: 4.5,
    macOptionClickForcesSelection: true,
  };
  const SIZES = [12, 13, 15, 17, 20, 24];
  const NOTE_MS = 4000;
  const at = (id) => document.getElementById(`slip-${id}`);

  // --- the user's settings, for all terminals: a cookie, since each session has its own origin ---------
  const chosen = { seen: false, theme: "auto", reader: false, size: OPTIONS.fontSize };
  try {
    const stored = JSON.parse(decodeURIComponent(/(?:^|; )slipway_terminal=([^;]*)/.exec(document.cookie)[1]));
    chosen.seen = stored.seen === true;
    chosen.theme = stored.theme in THEMES ? stored.theme : "auto";
    chosen.reader = stored.reader === true;
    chosen.size = SIZES.includes(stored.size) ? stored.size : OPTIONS.fontSize;
  } catch {
    // no settings yet
  }

  function remember() {
    const parent = location.hostname.replace(/^[a-z0-9]+\./, "");
    const text = `slipway_terminal=${encodeURIComponent(JSON.stringify(chosen))}`;
    const attributes = `; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
    // If the host is an IP address, or the parent not a domain, browsers accept only the second one.
    if (/[a-z]/.test(parent)) document.cookie = `${text}; Domain=${parent}${attributes}`;
    if (!document.cookie.includes(text)) document.cookie = text + attributes;
  }

  // --- colours ---------------------------------------------------------------------------------------
  const night = matchMedia("(prefers-color-scheme: dark)");

  function paint() {
    const theme = chosen.theme === "auto" ? (night.matches ? "dark" : "light") : chosen.theme;
    document.documentElement.dataset.theme = theme;
    if (terminal) terminal.options.theme = THEMES[theme];
  }
  night.addEventListener("change", paint);

  // --- notes -----------------------------------------------------------------------------------------
  let noteTimer = 0;
  let uncopied = "";

  function note(text, left = "") {
    const [span, button] = at("note").children;
    span.textContent = text;
    uncopied = left;
    button.hidden = !left;
    at("note").hidden = false;
    clearTimeout(noteTimer);
    noteTimer = setTimeout(endNote, left ? NOTE_MS * 5 : NOTE_MS);
  }

  function endNote() {
    at("note").hidden = true;
    uncopied = "";
  }

  // --- copying ---------------------------------------------------------------------------------------
  async function copy(text) {
    if (!text || !document.hasFocus()) return; // tmux tells every window, only one has the focus
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      if (!copyByCommand(text)) return note("Not copied yet: this browser wants a click or Ctrl+C.", text);
    }
    copied();
  }

  // Without https there is no navigator.clipboard.
  function copyByCommand(text) {
    const box = document.createElement("textarea");
    box.value = text;
    box.className = "slip-box";
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    terminal.focus();
    return done;
  }

  function copied() {
    note("Copied");
    dismissHint();
  }

  // tmux sends the selection as OSC 52, in base64; "?" would query the clipboard.
  function fromTmux(data) {
    const payload = data.slice(data.indexOf(";") + 1);
    if (payload !== "?") {
      const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
      copy(new TextDecoder().decode(bytes));
    }
    return true;
  }

  // --- keys ------------------------------------------------------------------------------------------
  // Returns false for keys that the terminal must not get.
  function onKey(event) {
    if (event.type !== "keydown" || event.altKey || event.metaKey) return true;
    const key = event.key.toLowerCase();
    if (key === "insert") return !(event.shiftKey || event.ctrlKey) || byInsert(event);
    if (!event.ctrlKey) return true;
    if (event.shiftKey && key === "h") return instead(event, openPanel);
    if (event.shiftKey && key === "c") return instead(event, copySelection);
    if (key === "v" && (event.shiftKey || !MAC)) return false; // the browser pastes
    if (key === "c" && !MAC && (terminal.hasSelection() || !at("note").hidden)) {
      // Right after a selection it means "copy", not "interrupt".
      return instead(event, copySelection);
    }
    return true;
  }

  function byInsert(event) {
    return event.ctrlKey ? instead(event, copySelection) : false;
  }

  function instead(event, act) {
    event.preventDefault();
    act();
    return false;
  }

  function copySelection() {
    const text = terminal.getSelection() || uncopied;
    terminal.clearSelection();
    endNote();
    copy(text);
  }

  // Control characters could end the bracketed paste, and the rest of the text would run at once.
  function paste(event) {
    if (event.target.closest?.(".slip")) return;
    event.preventDefault();
    event.stopPropagation();
    const text = event.clipboardData.getData("text/plain");
    // eslint-disable-next-line no-control-regex
    terminal.paste(text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, ""));
  }

  // --- help ------------------------------------------------------------------------------------------
  function dismissHint() {
    if (at("hint").hidden) return;
    at("hint").hidden = true;
    chosen.seen = true;
    remember();
  }

  function openPanel() {
    dismissHint();
    at("theme").value = chosen.theme;
    at("reader").checked = chosen.reader;
    at("size").value = chosen.size;
    at("panel").showModal();
  }

  function choose() {
    chosen.theme = at("theme").value;
    chosen.reader = at("reader").checked;
    terminal.options.screenReaderMode = chosen.reader;
    remember();
    paint();
  }

  function resize() {
    chosen.size = Number(at("size").value);
    terminal.options.fontSize = chosen.size;
    remember();
    refit();
  }

  // ttyd counts its columns again.
  function refit() {
    dispatchEvent(new Event("resize"));
  }

  function prepare() {
    if (MAC) for (const key of document.querySelectorAll("[data-mac]")) key.textContent = key.dataset.mac;
    at("hint").hidden = chosen.seen;
    at("help").addEventListener("click", openPanel);
    at("more").addEventListener("click", openPanel);
    at("seen").addEventListener("click", () => { dismissHint(); terminal.focus(); });
    at("note").lastElementChild.addEventListener("click", copySelection);
    at("theme").addEventListener("change", choose);
    at("size").addEventListener("change", resize);
    at("reader").addEventListener("change", choose);
    at("panel").addEventListener("close", () => terminal.focus());
    addEventListener("paste", paste, true);
    // In addition to ttyd, which does not notice when the same text is selected again.
    addEventListener("mouseup", () => setTimeout(() => copy(terminal.getSelection())));
  }

  // --- scrolled back ---------------------------------------------------------------------------------
  // The wheel turns on tmux's copy mode, in which keys are commands. start.sh has tmux report this in the
  // window's title; a key that is text ends it first, by a key of tmux's that only this page sends.
  const LEAVE = "\x1b[77777~";
  let scrolled = false;

  function fromTitle(title) {
    scrolled = title === "slipway-scrolled";
    at("scrolled").hidden = !scrolled;
    return true; // the window's title is ours
  }

  // Text, Enter, Tab, Backspace and pastes; other keys, such as PageUp, keep their meaning.
  function isText(data) {
    return /^[\r\t\x7f]|^[^\x00-\x1f\x7f]|^\x1b\[200~/.test(data); // eslint-disable-line no-control-regex
  }

  // Everything that is typed, also on touch screens, just before it is sent.
  function typed(data) {
    const text = scrolled && data === "\x1b" ? "" : SlipwayTouch.modify(data);
    if (!scrolled || !(isText(text) || !text)) return text;
    fromTitle("");
    return LEAVE + text;
  }

  // --- no answer -------------------------------------------------------------------------------------
  // There are no pings, which would look like use. So only what is typed shows that nothing answers; since
  // a program need not echo it, a request tells whether the terminal is still reachable.
  const PATIENCE = 2500; // milliseconds without an answer to a key, and again without one to the request
  let asked = 0;
  let lookingFor = 0;

  function expectAnswer() {
    asked ||= setTimeout(look, PATIENCE);
  }

  function answered() {
    clearTimeout(asked);
    asked = 0;
    lookingFor += 1; // a look that is under way no longer counts
    at("offline").hidden = true;
  }

  async function look() {
    const mine = ++lookingFor;
    const reachable = await reaches();
    if (mine !== lookingFor || ended || !connection || connection.readyState !== WebSocket.OPEN) return;
    if (reachable) return void answered();
    at("offline").hidden = false;
    asked = setTimeout(look, PATIENCE / 2);
  }

  async function reaches() {
    try {
      return (await fetch("/token", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) })).ok;
    } catch {
      return false;
    }
  }
  addEventListener("offline", look);
  addEventListener("online", look);

  // --- the connection to the session -----------------------------------------------------------------
  let leaving = false;
  let ended = false;
  let connection = null;
  addEventListener("pagehide", () => { leaving = true; });

  window.WebSocket = class extends WebSocket {
    constructor(...words) {
      super(...words);
      let opened = false;
      this.addEventListener("open", () => { opened = true; at("away").hidden = true; });
      this.addEventListener("message", nameWindow);
      this.addEventListener("message", answered);
      this.addEventListener("close", () => { if (!leaving) onClose(opened); });
      connection = this;
    }

    send(data) {
      // ttyd 1.7.7 ignores "pause" and may lose output on "resume"; tmux has its own flow control.
      if (data instanceof Uint8Array && (data[0] === 50 || data[0] === 51)) return;
      const input = data instanceof Uint8Array && data[0] === 48;
      super.send(input ? withTyped(data) : data);
      if (input) expectAnswer();
    }
  };

  function withTyped(data) {
    const given = new TextDecoder().decode(data.subarray(1));
    const text = typed(given);
    return text === given ? data : new TextEncoder().encode(`0${text}`);
  }

  // ttyd 1.7.7 closes the connection in the same way for an ended shell and for an error, and may drop a
  // program's last output. So start.sh reports that tmux has ended, and waits until we close it.
  function hangUp() {
    ended = true;
    connection.close();
    return true;
  }

  function onClose(opened) {
    answered();
    if (ended) {
      return away("This shell has ended", "Everything else in the session keeps running.", "Open a new shell");
    }
    if (!opened) {
      return away("The terminal does not open",
        "Perhaps too many of its windows are open. Close some, then try again.", "Try again");
    }
    away("The connection is lost", "What runs here keeps running. The terminal reconnects by itself as soon as it can.",
      "Try now");
    comeBack(1000);
  }

  function away(title, text, button) {
    const [heading, line, act] = at("away").firstElementChild.children;
    heading.textContent = title;
    line.textContent = text;
    act.textContent = button;
    act.onclick = () => location.reload();
    at("away").hidden = false;
    act.focus();
  }

  // tmux has kept everything, so reloading the page shows all of it; if the session is over or the app
  // has stopped, the page at that address then says so.
  async function comeBack(pause) {
    await new Promise((done) => { setTimeout(done, pause); });
    if (await canReload()) return location.reload();
    return comeBack(Math.min(pause * 1.5, 10000));
  }

  async function canReload() {
    try {
      const token = await fetch("/token", { cache: "no-store" });
      if (token.ok) return true;
      const status = await fetch("/.slipway/status", { cache: "no-store" });
      return status.status < 500 && (!status.ok || (await status.json()).step !== "ready");
    } catch {
      return false;
    }
  }

  // At the first output, which comes after ttyd's own title.
  function nameWindow(event) {
    if (new Uint8Array(event.data)[0] !== 48) return;
    this.removeEventListener("message", nameWindow);
    fetch("/.slipway/status").then((response) => response.json()).then(({ session }) => {
      if (session) document.title = `${session} · Terminal`;
    }).catch(() => {}); // keep the title
  }

  // --- as soon as ttyd has created its terminal ------------------------------------------------------
  let terminal = null;
  Object.defineProperty(window, "term", {
    get: () => terminal,
    set: (created) => {
      terminal = created;
      document.getElementById("terminal-container").setAttribute("role", "main");
      Object.assign(terminal.options, OPTIONS, { screenReaderMode: chosen.reader, fontSize: chosen.size });
      terminal.attachCustomKeyEventHandler(onKey);
      terminal.parser.registerOscHandler(52, fromTmux);
      terminal.parser.registerOscHandler(7770, hangUp);
      for (const title of [0, 2]) terminal.parser.registerOscHandler(title, fromTitle);
      SlipwayTouch.start(terminal, note, refit);
      paint();
    },
  });
  paint();
  prepare();
})();
