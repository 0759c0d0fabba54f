// Copies and pastes between the desktop and the browser, by the usual keys, or by the panel.
const MAC = /^(Mac|iP)/.test(navigator.platform);
const CONTROL = 0xffe3;
const SHIFT = 0xffe1;
const INSERT = 0xff63;
const LETTER_V = 0x76;
const CAPITAL_V = 0x56; // while Shift is held, the X server would release it for the small letter
const MAC_COMMANDS = [0xffe9, 0xffea, 0xffeb, 0xffec]; // what noVNC may have sent for the command key
const PASTE_MS = 150; // without an event of the browser's by then, the clipboard was empty or forbidden

const at = (id) => document.getElementById(id);

export class Clipboard {
  constructor(connection, note) {
    this.connection = connection;
    this.note = note;
    this.text = "";
    this.pending = null;
    // Before noVNC, which would swallow the keys.
    addEventListener("keydown", (event) => this.onKey(event), true);
    addEventListener("keyup", (event) => this.onRelease(event), true);
    addEventListener("paste", (event) => this.onPaste(event), true);
    at("clip-open").addEventListener("click", () => this.open());
    at("clip-send").addEventListener("click", () => this.send());
    at("clip-copy").addEventListener("click", () => this.copy(at("clip-text").value));
  }

  // --- from the desktop ------------------------------------------------------------------------------------
  received(text) {
    this.text = text;
    if (at("clip").open) at("clip-text").value = text;
    // Only the window in use: others, and those in the background, must not replace the clipboard.
    if (document.hasFocus() && text) this.copy(text);
  }

  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      if (!byCommand(text)) return this.note("Copied in the desktop only.", () => this.copy(text));
    }
    this.note("Copied");
  }

  // --- to the desktop --------------------------------------------------------------------------------------
  // The keys that paste: the browser hands over its clipboard first, then the desktop gets the keys.
  onKey(event) {
    const insert = event.key === "Insert" && event.shiftKey && !event.ctrlKey;
    const letter = event.key.toLowerCase() === "v" && !event.altKey && (MAC ? event.metaKey : event.ctrlKey && !event.metaKey);
    if (!(insert || letter) || !this.connection() || document.querySelector("dialog[open]")) return;
    event.stopImmediatePropagation();
    clearTimeout(this.pending?.timer);
    const keys = insert ? [SHIFT, INSERT] : [CONTROL, ...(event.shiftKey ? [SHIFT, CAPITAL_V] : [LETTER_V])];
    // The keys that are still held down, which the desktop knows as such.
    const held = [...(event.ctrlKey ? [CONTROL] : []), ...(event.shiftKey ? [SHIFT] : [])];
    this.pending = { keys, held, timer: setTimeout(() => this.press(), PASTE_MS) };
  }

  // Keys released before the browser hands over its clipboard are pressed again.
  onRelease(event) {
    const key = { Control: CONTROL, Shift: SHIFT }[event.key];
    if (this.pending && key) this.pending.held = this.pending.held.filter((one) => one !== key);
  }

  onPaste(event) {
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    const text = event.clipboardData.getData("text/plain");
    if (text) this.connection()?.clipboardPasteFrom(text);
    this.press();
  }

  press() {
    const connection = this.connection();
    if (!this.pending || !connection) return;
    clearTimeout(this.pending.timer);
    const { keys, held } = this.pending;
    this.pending = null;
    if (MAC) for (const key of MAC_COMMANDS) connection.sendKey(key, null, false);
    for (const key of keys) if (!held.includes(key)) connection.sendKey(key, null, true);
    for (const key of keys.toReversed()) if (!held.includes(key)) connection.sendKey(key, null, false);
  }

  // --- the panel -------------------------------------------------------------------------------------------
  open() {
    at("clip-text").value = this.text;
    at("clip").showModal();
  }

  send() {
    const connection = this.connection();
    if (!connection) return this.note("The desktop is not connected.");
    this.text = at("clip-text").value;
    connection.clipboardPasteFrom(this.text);
    at("clip").close();
    this.note("Sent: paste it in the desktop.");
  }
}

// Without https there is no navigator.clipboard. Nothing is selected for it: that would take the focus, and
// with it the keys that are held down.
function byCommand(text) {
  let done = false;
  const give = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
    event.stopImmediatePropagation();
    done = true;
  };
  document.addEventListener("copy", give, { capture: true, once: true });
  document.execCommand("copy");
  document.removeEventListener("copy", give, { capture: true });
  return done;
}
