// Asks the user's file server: JSON through the portal, bytes below /data/. An expired login asks for
// the password and goes on (common/relogin.js).
import * as relogin from "../common/relogin.js";

export const token = () => document.querySelector("#files-token [name=csrf_token]").value;
const AGAIN = new Set([401, 404, 502, 503, 504]);

export class Refused extends Error {
  /** @param {number} status of HTTP; 0: no answer @param {{ detail?: string, code?: string, field?: string }} found */
  constructor(status, found) {
    super(found.detail || `The portal answered with ${status}.`);
    this.status = status;
    this.code = found.code ?? "";
    this.field = found.field ?? "";
  }
}

/** @param {Response} answer */
async function jsonOf(answer) {
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, found);
  return found;
}

const lost = (/** @type {Error} */ error) => {
  if (error instanceof Refused || error.name === "AbortError") throw error;
  throw new Refused(0, { code: "lost", detail: "The portal does not answer. Check your connection and try again." });
};

// Another request starts the file server: this one has done nothing yet, and is sent again.
/** @param {() => Promise<Response>} send */
async function patiently(send) {
  for (let left = 10; ; left -= 1) {
    const answer = await send();
    if (answer.status !== 503 || !left) return answer;
    const found = await answer.clone().json().catch(() => ({}));
    if (found.code !== "starting") return answer;
    await new Promise((done) => { setTimeout(done, 1000); });
  }
}

const address = (/** @type {string} */ action, /** @type {string} */ location) => `/files-ask/${action}${location ? `/${location}` : ""}`;

export const get = (/** @type {string} */ action, location = "", query = {}) => patiently(() => relogin.send(
  (headers) => fetch(`${address(action, location)}?${new URLSearchParams(query)}`, { headers }))).then(jsonOf).catch(lost);

export const change = (/** @type {string} */ action, /** @type {string} */ location, body = {}, method = "POST") => patiently(() => relogin.post(
  address(action, location),
  () => new URLSearchParams({ csrf_token: token(), method, body: JSON.stringify(body) }))).then(jsonOf).catch(lost);

// Starts the user's file server if there is none, and lets this browser reach it.
export const admit = () => relogin.post("/files-access", () => new URLSearchParams({ csrf_token: token() }));

// A request below /data/; sent once more after the server was started again.
/** @param {string} path */
export async function bytes(path, options = {}) {
  const send = () => patiently(() => fetch(path, { cache: "no-store", ...options }));
  let answer = await send().catch(lost);
  if (AGAIN.has(answer.status)) {
    await admit().catch(lost);
    answer = await send().catch(lost);
  }
  if (!answer.ok && answer.status !== 416) await jsonOf(answer);
  return answer;
}

/** @param {Promise<Response>} answer */
export const read = (answer) => answer.then(jsonOf).catch(lost);
