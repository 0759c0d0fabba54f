// Asks the user's file server: JSON through the portal, bytes below /data/. An expired login asks for
// the password and goes on (relogin.js).
globalThis.slipwayAsk = (() => {
  const token = () => document.querySelector("#files-token [name=csrf_token]").value;
  const AGAIN = new Set([401, 404, 502, 503, 504]);

  class Refused extends Error {
    constructor(status, found) {
      super(found.detail || `The portal answered with ${status}.`);
      Object.assign(this, { status, code: found.code ?? "", field: found.field ?? "" });
    }
  }

  async function read(answer) {
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(answer.status, found);
    return found;
  }

  const lost = (error) => {
    if (error instanceof Refused || error.name === "AbortError") throw error;
    throw new Refused(0, { code: "lost", detail: "The portal does not answer. Check your connection and try again." });
  };

  // Another request starts the file server: this one has done nothing yet, and is sent again.
  async function patiently(send) {
    for (let left = 10; ; left -= 1) {
      const answer = await send();
      if (answer.status !== 503 || !left) return answer;
      const found = await answer.clone().json().catch(() => ({}));
      if (found.code !== "starting") return answer;
      await new Promise((done) => { setTimeout(done, 1000); });
    }
  }

  const address = (action, location) => `/files-ask/${action}${location ? `/${location}` : ""}`;

  const get = (action, location = "", query = {}) => patiently(() => slipwayLogin.send(
    (headers) => fetch(`${address(action, location)}?${new URLSearchParams(query)}`, { headers }))).then(read).catch(lost);

  const change = (action, location, body = {}, method = "POST") => patiently(() => slipwayLogin.post(
    address(action, location),
    () => new URLSearchParams({ csrf_token: token(), method, body: JSON.stringify(body) }))).then(read).catch(lost);

  // Starts the user's file server if there is none, and lets this browser reach it.
  const admit = () => slipwayLogin.post("/files-access", () => new URLSearchParams({ csrf_token: token() }));

  // A request below /data/; sent once more after the server was started again.
  async function bytes(path, options = {}) {
    const send = () => patiently(() => fetch(path, { cache: "no-store", ...options }));
    let answer = await send().catch(lost);
    if (AGAIN.has(answer.status)) {
      await admit().catch(lost);
      answer = await send().catch(lost);
    }
    if (!answer.ok && answer.status !== 416) await read(answer);
    return answer;
  }

  return { get, change, bytes, admit, Refused, token, read: (answer) => answer.then(read).catch(lost) };
})();

// Words and figures that several parts of the page need.
globalThis.slipwayWords = (() => {
  const UNITS = ["B", "KB", "MB", "GB", "TB"];
  const number = new Intl.NumberFormat("en");
  function size(bytes) {
    let [value, unit] = [bytes, 0];
    while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
    return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
  }
  const counted = (count, one, many = `${one}s`) => `${number.format(count)} ${count === 1 ? one : many}`;
  function span(seconds) {
    if (!Number.isFinite(seconds)) return "";
    if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
    if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
    return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
  }
  // A name for people: signs that change how others are shown are replaced, as the server does.
  const visible = (name) => name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
  // The last name of a location, for people.
  function nameOf(location) {
    const last = location.split("/").pop();
    try {
      return visible(decodeURIComponent(last));
    } catch {
      return last;
    }
  }
  const parentOf = (location) => location.split("/").slice(0, -1).join("/");
  // A name as part of a location, as the file server writes it.
  const encode = (name) => encodeURIComponent(name).replaceAll(/%(2B|2C|3A|3B|3D|40|24)/g, decodeURIComponent);
  function say(text) {
    const place = document.getElementById("announce");
    place.textContent = "";
    setTimeout(() => { place.textContent = text; }, 50);
  }
  return { size, counted, span, visible, nameOf, parentOf, encode, say, number };
})();
