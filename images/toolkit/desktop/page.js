// The desktop's page: the X server's screen by noVNC, its connection in words, clipboard and full screen.
import RFB from "novnc/core/rfb.js";
import { Clipboard } from "./clipboard.js";
import { showTime } from "./time.js";

const at = (id) => document.getElementById(id);
const NOTE_MS = 4000;
const USED_MS = 30000; // how often use is reported
const PATIENCE = 6000; // milliseconds without an answer
const QUALITIES = ["8", "5", "2"];
const night = matchMedia("(prefers-color-scheme: dark)");

let rfb = null;
let leaving = false;
let attempt = 0;

// --- settings, for all desktops: a cookie, since each session has its own origin ------------------------
const chosen = { theme: "auto", fit: "resize", quality: "8" };
try {
  const stored = JSON.parse(decodeURIComponent(/(?:^|; )slipway_desktop=([^;]*)/.exec(document.cookie)[1]));
  if (["light", "dark"].includes(stored.theme)) chosen.theme = stored.theme;
  if (stored.fit === "scale") chosen.fit = "scale";
  if (QUALITIES.includes(stored.quality)) chosen.quality = stored.quality;
} catch {
  // no settings yet
}

function remember() {
  const parent = location.hostname.replace(/^[a-z0-9]+\./, "");
  const text = `slipway_desktop=${encodeURIComponent(JSON.stringify(chosen))}`;
  const attributes = `; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
  // If the host is an IP address, or the parent not a domain, browsers accept only the second one.
  if (/[a-z]/.test(parent)) document.cookie = `${text}; Domain=${parent}${attributes}`;
  if (!document.cookie.includes(text)) document.cookie = text + attributes;
}

function paint() {
  const theme = chosen.theme === "auto" ? (night.matches ? "dark" : "light") : chosen.theme;
  document.documentElement.dataset.theme = theme;
}

function apply() {
  paint();
  if (!rfb) return;
  rfb.resizeSession = chosen.fit === "resize";
  // Also while the sizes differ for a moment, or because another window has chosen another one.
  rfb.scaleViewport = true;
  rfb.qualityLevel = Number(chosen.quality);
  rfb.background = "transparent";
}

// --- words -----------------------------------------------------------------------------------------------
function say(state, text) {
  at("state").dataset.state = state;
  at("state").textContent = text;
}

function away(title, text, button, act) {
  at("away-title").textContent = title;
  at("away-text").textContent = text;
  at("away-act").textContent = button;
  at("away-act").onclick = act;
  at("away").hidden = false;
  at("away-act").focus();
}

let noteTimer = 0;

function note(text, act = null) {
  const [span, button] = at("note").children;
  span.textContent = text;
  button.hidden = !act;
  button.onclick = () => { at("note").hidden = true; act(); };
  at("note").hidden = false;
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => { at("note").hidden = true; }, act ? NOTE_MS * 4 : NOTE_MS);
}

// --- the connection --------------------------------------------------------------------------------------
function connect() {
  attempt += 1;
  say("connecting", attempt > 1 ? "Reconnecting" : "Connecting");
  at("screen").replaceChildren();
  rfb = new RFB(at("screen"), `${location.origin.replace(/^http/, "ws")}/vnc`, { shared: true });
  apply();
  const mine = rfb;
  rfb.addEventListener("connect", () => { if (mine === rfb) connected(); });
  rfb.addEventListener("disconnect", () => { if (mine === rfb && !leaving) lost(); });
  rfb.addEventListener("clipboard", (event) => clipboard.received(event.detail.text));
}

function connected() {
  attempt = 0;
  at("away").hidden = true;
  say("connected", "Connected");
  if (!document.querySelector("dialog[open]")) rfb.focus();
}

function lost() {
  rfb = null;
  say("lost", "Not connected");
  away("The connection is lost", "The programs keep running. The desktop reconnects by itself as soon as it can.",
    "Try now", connect);
  setTimeout(comeBack, Math.min(1000 * 1.5 ** attempt, 10000));
}

// If the session is over or the app has stopped, the page at this address then says so.
async function comeBack() {
  if (rfb) return; // the button was faster
  if (await hasEnded()) location.reload();
  else if (!rfb) connect();
}

async function hasEnded() {
  try {
    const status = await fetch("/.slipway/status", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    return status.status < 500 && (!status.ok || (await status.json()).step !== "ready");
  } catch {
    return false;
  }
}

// --- use, and whether the other side still answers -------------------------------------------------------
// What the screen sends is not use: a clock does that as well. So the page says when somebody uses it.
let reported = 0;
let silent = false;

function used() {
  if (Date.now() - reported < USED_MS) return;
  reported = Date.now();
  look();
}

async function look() {
  let reached = false;
  try {
    const options = { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
    reached = (await fetch("/used", options)).ok;
  } catch {
    // no answer
  }
  if (!rfb) return;
  if (!reached) {
    silent = true;
    say("lost", "No answer");
    setTimeout(look, PATIENCE / 2);
  } else if (silent) {
    // The old connection may never notice that the network has changed.
    silent = false;
    const old = rfb;
    connect();
    old.disconnect();
  }
}

for (const kind of ["keydown", "pointerdown", "wheel"]) addEventListener(kind, used, { capture: true, passive: true });
addEventListener("mousemove", used, { capture: true, passive: true });
addEventListener("offline", look);
addEventListener("online", look);
addEventListener("pagehide", () => { leaving = true; });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// --- full screen, with all keys where the browser permits that ---------------------------------------------
async function toggleFull() {
  if (document.fullscreenElement) return document.exitFullscreen();
  try {
    await at("screen").requestFullscreen({ navigationUI: "hide" });
    await navigator.keyboard?.lock();
  } catch {
    if (!document.fullscreenElement) note("This browser does not permit full screen here.");
  }
  rfb?.focus();
}

addEventListener("fullscreenchange", () => {
  at("full").setAttribute("aria-pressed", String(Boolean(document.fullscreenElement)));
  if (!document.fullscreenElement) navigator.keyboard?.unlock();
});

// --- start -------------------------------------------------------------------------------------------------
const clipboard = new Clipboard(() => rfb, note);

function prepare() {
  for (const name of ["theme", "fit", "quality"]) {
    at(name).value = chosen[name];
    at(name).addEventListener("change", () => { chosen[name] = at(name).value; remember(); apply(); });
  }
  at("full").addEventListener("click", toggleFull);
  at("full").hidden = !document.fullscreenEnabled;
  at("help-open").addEventListener("click", () => at("help").showModal());
  for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("close", () => rfb?.focus());
  night.addEventListener("change", paint);
}

paint();
prepare();
connect();
showTime(at("left"), (name) => {
  at("name").textContent = name;
  document.title = `${name} · Desktop`;
});
