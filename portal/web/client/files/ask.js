// Requests to the user's file server: JSON through the portal, bytes below /data/. When the login has expired,
// they ask for the password and are repeated (common/relogin.js).
import * as relogin from "../common/relogin.js";

export const token = () => document.querySelector("#files-token [name=csrf_token]").value;
const AGAIN = new Set([401, 404, 502, 503, 504]);

export class RequestError extends Error {
  /** @param {number} status of HTTP; 0: no response @param {{ detail?: string, code?: string, field?: string }} problem */
  constructor(status, problem) {
    super(problem.detail || `The portal answered with ${status}.`);
    this.status = status;
    this.code = problem.code ?? "";
    this.field = problem.field ?? "";
  }
}

/** @param {Response} answer */
async function jsonOf(answer) {
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new RequestError(answer.status, body);
  return body;
}

const lost = (/** @type {Error} */ error) => {
  if (error instanceof RequestError || error.name === "AbortError") throw error;
  throw new RequestError(0, { code: "lost", detail: "The portal does not answer. Check your connection and try again." });
};

const LONGEST_START = 120; // seconds, if many people open their files at once

// While the file server starts, requests have no effect (503) and are repeated.
/** @param {() => Promise<Response>} send */
async function patiently(send) {
  for (let left = LONGEST_START; ;) {
    const answer = await send();
    if (answer.status !== 503 || left <= 0) return answer;
    const body = await answer.clone().json().catch(() => ({}));
    if (body.code !== "starting") return answer;
    const pause = Number(answer.headers.get("Retry-After")) || 1;
    left -= pause;
    await new Promise((resolve) => { setTimeout(resolve, pause * 1000); });
  }
}

const address = (/** @type {string} */ action, /** @type {string} */ location) => `/files-ask/${action}${location ? `/${location}` : ""}`;

export const get = (/** @type {string} */ action, location = "", query = {}) => patiently(() => relogin.send(
  (headers) => fetch(`${address(action, location)}?${new URLSearchParams(query)}`, { headers }))).then(jsonOf).catch(lost);

export const change = (/** @type {string} */ action, /** @type {string} */ location, body = {}, method = "POST") => patiently(() => relogin.post(
  address(action, location),
  () => new URLSearchParams({ csrf_token: token(), method, body: JSON.stringify(body) }))).then(jsonOf).catch(lost);

// Starts the user's file server if necessary, and admits this browser.
export const admit = () => relogin.post("/files-access", () => new URLSearchParams({ csrf_token: token() }));

// A request below /data/; repeated once after a restart of the file server.
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
