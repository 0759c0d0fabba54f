// What a touch screen's keyboard lacks: keys such as Esc and Ctrl in a bar, and scrolling by swiping.
(() => {
  "use strict";
  const LINE = 24; // pixels of a swipe for one turn of the wheel
  const held = { ctrl: false, alt: false };
  const bar = () => document.getElementById("slip-keys");
  let terminal = null;
  let tell = null;

  function hold(name, on) {
    held[name] = on;
    bar().querySelector(`[data-hold=${name}]`).setAttribute("aria-pressed", String(on));
  }

  // Applies Ctrl and Alt of the bar to what is typed next.
  function modify(data) {
    if (!(held.ctrl || held.alt)) return data;
    const arrow = /^\x1b[[O]([A-D])$/.exec(data); // eslint-disable-line no-control-regex
    if (!arrow && (data.length !== 1 || data < " ")) return data;
    const { ctrl, alt } = held;
    hold("ctrl", false);
    hold("alt", false);
    if (arrow) return `\x1b[1;${1 + (alt ? 2 : 0) + (ctrl ? 4 : 0)}${arrow[1]}`;
    return (alt ? "\x1b" : "") + (ctrl ? control(data) : data);
  }

  function control(letter) {
    const code = letter === "?" ? 127 : letter === " " ? 0 : letter.toUpperCase().charCodeAt(0);
    return code >= 64 && code < 96 ? String.fromCharCode(code & 31) : code === 0 || code === 127 ? String.fromCharCode(code) : letter;
  }

  function press(button) {
    const { key, arrow, hold: name } = button.dataset;
    if (name) return hold(name, !held[name]);
    if (key) return terminal.input(key);
    if (arrow) return terminal.input(`\x1b${terminal.modes.applicationCursorKeysMode ? "O" : "["}${arrow}`);
    return paste();
  }

  async function paste() {
    try {
      const data = new DataTransfer();
      data.setData("text/plain", await navigator.clipboard.readText());
      terminal.textarea.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    } catch {
      tell("Press long on the terminal, then choose “Paste”."); // no https, or no permission
    }
  }

  // Without a wheel, a swipe turns it: tmux keeps the lines, so the page itself has nothing to scroll.
  function swipe(screen) {
    let last = null;
    screen.addEventListener("touchstart", ({ touches }) => { last = touches.length === 1 ? touches[0].clientY : null; }, { passive: true });
    screen.addEventListener("touchmove", (event) => {
      if (last === null) return;
      const { clientX, clientY } = event.touches[0];
      event.preventDefault();
      const lines = Math.trunc((last - clientY) / LINE);
      if (!lines) return;
      last -= lines * LINE;
      const turn = { deltaY: Math.sign(lines) * LINE, clientX, clientY, bubbles: true, cancelable: true };
      for (let n = 0; n < Math.abs(lines); n++) terminal.element.dispatchEvent(new WheelEvent("wheel", turn));
    }, { passive: false });
  }

  // The keyboard of a touch screen covers the page: the bar stays above it.
  function fit(refit) {
    const view = visualViewport;
    const high = () => {
      document.documentElement.style.setProperty("--high", `${view.height}px`);
      scrollTo(0, 0);
      refit();
    };
    view.addEventListener("resize", high);
    high();
  }

  function start(created, note, refit) {
    [terminal, tell] = [created, note];
    if (!matchMedia("(pointer: coarse)").matches) return;
    document.documentElement.classList.add("touch");
    bar().hidden = false;
    // The focus, and with it the screen's keyboard, stays where it is.
    bar().addEventListener("pointerdown", (event) => event.preventDefault());
    bar().addEventListener("mousedown", (event) => event.preventDefault());
    bar().addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) press(button);
    });
    swipe(document.getElementById("terminal-container"));
    fit(refit);
  }

  window.SlipwayTouch = { modify, start };
})();
