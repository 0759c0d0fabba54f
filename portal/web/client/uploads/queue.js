// Resumable uploads (tus), three at a time. The `problem` of a failed item is the reason.
import { Upload } from "tus-js-client";
import { encode } from "../common/words.js";
import * as sources from "./sources.js";

const AT_ONCE = 3;
const CHUNK = 256 * 1024 * 1024; // bytes of a request: then the server confirms what it has
const WHOLE = 4 * 1024 * 1024; // a smaller file is sent with its creation
const PAUSES = [1, 2, 4, 8, 15, 30]; // seconds before each attempt, the last one for ever
const SILENCE = 30; // seconds without progress after which the line counts as lost
const WINDOW = 8; // seconds over which the rate is measured
const ENDPOINT = "/data/uploads/";
const ENDED = ["done", "failed", "cancelled"];
const KEY = "slipway-upload:";

/** A conflict with an existing name; `answer` resolves it, with `forAll` for all files that were added together. */
/** @typedef {{ item: UploadItem, answer: (how: OnConflict, forAll: boolean) => void }} Conflict */

/** @type {((item: UploadItem) => void)[]} */
const changeCalls = [];
/** @type {((conflict: Conflict) => void)[]} */
const conflictCalls = [];
/** @type {UploadItem[]} */
export const items = [];
let ensureServer = async () => {};
/** @type {Promise<void> | null} */
let starting = null; // the promise of ensureServer
let last = 0;

/** @param {(item: UploadItem) => void} call */
export function onChange(call) {
  changeCalls.push(call);
}

/** @param {(conflict: Conflict) => void} call */
export function onConflict(call) {
  conflictCalls.push(call);
}

/** @param {UploadItem} item */
function changed(item) {
  for (const call of changeCalls) call(item);
}

/** @param {UploadItem} item @param {UploadState} state */
function set(item, state, problem = "") {
  item.state = state;
  item.problem = problem;
  if (state !== "running") Object.assign(item, { rate: 0, remaining: null, marks: [] });
  changed(item);
  if (state !== "retrying") start();
}

// Storage key for the URL of a file's unfinished upload, for after a reload of the page.
const keyOf = (/** @type {UploadItem} */ item) => `${KEY}${item.target}|${item.size}|${item.file.lastModified}`;

/** @param {UploadItem} item */
function remember(item) {
  try {
    if (item.url) localStorage.setItem(keyOf(item), item.url);
    else localStorage.removeItem(keyOf(item));
  } catch { /* no storage: only a reload loses it */ }
}

/** @param {UploadItem} item */
function recalled(item) {
  try {
    return localStorage.getItem(keyOf(item));
  } catch {
    return null;
  }
}

const encoded = (/** @type {string} */ path) => path.split("/").map((name) => encode(name.toWellFormed?.() ?? name)).join("/");

/** @param {Iterable<File | Chosen>} files @param {string} folder a location */
export function add(files, folder) {
  /** @type {UploadItem["batch"]} */
  const batch = { how: null }; // the answer for all conflicts of these files
  for (const each of files) {
    const { file, path, handle } = each instanceof File ? { file: each, path: "", handle: undefined } : each;
    const target = `${folder}/${encoded(path || file.webkitRelativePath || file.name)}`;
    if (items.some((item) => item.target === target && !ENDED.includes(item.state))) continue;
    last += 1;
    /** @type {UploadItem} */
    const item = { id: last, name: file.name, target, file, handle, size: file.size, sent: 0, rate: 0,
      remaining: null, state: "waiting", problem: "", marks: [], attempt: 0, how: "refuse", batch, url: null, heard: 0, timer: 0, upload: null };
    item.url = recalled(item);
    items.push(item);
    sources.keep(item);
    changed(item);
  }
  start();
}

// --- running ---------------------------------------------------------------------------------

function start() {
  const running = items.filter((item) => ["running", "retrying"].includes(item.state)).length;
  const waiting = items.filter((item) => item.state === "waiting").slice(0, Math.max(AT_ONCE - running, 0));
  for (const item of waiting) {
    item.state = "running";
    run(item);
  }
}

// Sets the call-back before the first request and before each new attempt.
/** @param {() => Promise<void>} call */
export function ensureWith(call) {
  ensureServer = call;
}

function ensure() {
  starting ??= Promise.resolve().then(() => ensureServer()).finally(() => { starting = null; });
  return starting;
}

/** @param {UploadItem} item */
async function run(item) {
  item.marks = [];
  item.heard = Date.now();
  set(item, "running");
  try {
    await ensure();
  } catch {
    retry(item);
    return;
  }
  if (item.state !== "running") return;
  item.heard = Date.now();
  item.upload = new Upload(item.file, options(item));
  item.upload.start();
}

/** @param {UploadItem} item @returns {import("tus-js-client").UploadOptions} */
function options(item) {
  const metadata = { path: item.target, on_conflict: item.how, modified: String(item.file.lastModified / 1000) };
  return {
    // Without an endpoint, the library does not restart the upload on a response that is not the server's.
    endpoint: item.url ? null : ENDPOINT,
    uploadUrl: item.url,
    metadata,
    chunkSize: CHUNK,
    uploadDataDuringCreation: item.size <= WHOLE,
    retryDelays: null,
    storeFingerprintForResuming: false,
    onProgress: (/** @type {any} */ sent) => progress(item, sent),
    onSuccess: () => {
      item.sent = item.size;
      forget(item);
      set(item, "done");
    },
    onError: (error) => failed(item, /** @type {import("tus-js-client").DetailedError} */ (error)),
    onUploadUrlAvailable: () => {
      if (item.size <= WHOLE && !item.url) return; // it is complete
      if (!item.upload) return;
      item.url = item.upload.url;
      item.upload.options.endpoint = null;
      remember(item);
    },
  };
}

/** @param {UploadItem} item */
function forget(item) {
  item.url = null;
  remember(item);
  sources.drop(item);
}

/**
 * @param {UploadItem} item
 * @param {number} sent
 */
function progress(item, sent) {
  const now = Date.now();
  if (sent > item.sent) item.attempt = 0;
  item.sent = sent;
  item.heard = now;
  item.marks.push([now, sent]);
  while (item.marks.length > 2 && now - item.marks[0][0] > WINDOW * 1000) item.marks.shift();
  const [time, before] = item.marks[0];
  item.rate = now > time ? Math.max(sent - before, 0) / (now - time) * 1000 : 0;
  item.remaining = item.rate ? (item.size - sent) / item.rate : null;
  changed(item);
}

// --- errors ---------------------------------------------------------------------------

// Error codes of the file server after which an upload is retried or restarted; others are shown to the user.
const AGAIN = ["offset", "locked", "busy", "away", "error"];
const ANEW = ["no_upload", "gone", "checksum"];
/** @type {Record<number, string>} */
const BY_STATUS = { 404: "no_upload", 409: "exists", 410: "gone", 423: "locked", 500: "error", 503: "away" };

// The server's answer as {code, detail}; null if it was not the file server that answered.
/** @param {import("tus-js-client").DetailedError} error */
function answerOf(error) {
  const response = error.originalResponse;
  if (!response?.getHeader("Tus-Resumable")) return null;
  try {
    return JSON.parse(response.getBody());
  } catch { // HEAD has no body; its 409 means that all bytes have arrived and the name is taken
    return { code: BY_STATUS[response.getStatus()] ?? "", detail: error.message };
  }
}

/** @param {UploadItem} item @param {import("tus-js-client").DetailedError} error */
async function failed(item, error) {
  if (item.state !== "running") return;
  const answer = answerOf(error);
  if (answer) decide(item, answer);
  else if (await isReadable(item.file)) retry(item);
  else set(item, "failed", "This file was changed or moved on your computer. Choose it again.");
}

/** @param {UploadItem} item @param {{ code: string, detail: string }} answer */
function decide(item, { code, detail }) {
  if (code === "exists") conflict(item);
  else if (AGAIN.includes(code)) retry(item);
  else if (item.url && ANEW.includes(code)) {
    item.url = null;
    item.sent = 0;
    remember(item);
    retry(item);
  } else set(item, "failed", detail);
}

const isReadable = (/** @type {File} */ file) => file.slice(0, 1).arrayBuffer().then(() => true, () => false);

/** @param {UploadItem} item */
function retry(item) {
  set(item, "retrying");
  const pause = PAUSES[Math.min(item.attempt, PAUSES.length - 1)];
  item.attempt += 1;
  item.timer = setTimeout(() => run(item), pause * 1000 * (0.8 + 0.4 * Math.random()));
}

/** @param {UploadItem} item */
function stop(item) {
  clearTimeout(item.timer);
  item.upload?.abort();
  item.upload = null;
}

const all = (/** @type {UploadState} */ state) => items.filter((item) => item.state === state);

addEventListener("online", () => {
  for (const item of all("retrying")) {
    clearTimeout(item.timer);
    run(item);
  }
});

// Restarts uploads without progress: a connection can be lost without an error, and the request would wait.
/** @param {number} silence */
function interrupt(silence) {
  for (const item of all("running")) {
    if (Date.now() - item.heard < silence) continue;
    stop(item);
    retry(item);
  }
}
addEventListener("offline", () => interrupt(0));
setInterval(() => interrupt(SILENCE * 1000), 5000);

addEventListener("beforeunload", (event) => {
  if (items.some(({ state }) => ["waiting", "running", "retrying"].includes(state))) event.preventDefault();
});

// --- names that exist ---------------------------------------------------------------------------

/** @param {UploadItem} item */
function conflict(item) {
  const how = item.how === "refuse" ? item.batch.how : item.how;
  if (how) {
    solve(item, how);
    return;
  }
  set(item, "asking");
  /** @type {Conflict} */
  const question = { item, answer: (chosen, forAll) => answered(item, chosen, forAll) };
  for (const call of conflictCalls) call(question);
}

/** @param {UploadItem} item @param {OnConflict} how @param {boolean} forAll */
function answered(item, how, forAll) {
  if (forAll) item.batch.how = how;
  const same = items.filter((each) => each === item || (forAll && each.batch === item.batch));
  for (const each of same) if (each.state === "asking") solve(each, how);
}

/** @param {UploadItem} item @param {OnConflict} how */
function solve(item, how) {
  if (how === "skip") {
    cancel(item.id);
    return;
  }
  item.how = how;
  if (item.url) finish(item);
  else {
    item.attempt = 0;
    set(item, "waiting");
  }
}

// Completes an upload whose bytes have all arrived, under a free name.
/** @param {UploadItem} item */
async function finish(item) {
  set(item, "running");
  const headers = { "Tus-Resumable": "1.0.0", "Upload-Offset": String(item.size), "Upload-On-Conflict": item.how,
    "Content-Type": "application/offset+octet-stream" };
  const answer = await fetch(item.url ?? "", { method: "PATCH", headers }).catch(() => null);
  if (answer?.ok) {
    item.sent = item.size;
    forget(item);
    set(item, "done");
    return;
  }
  const problem = answer?.headers.get("Tus-Resumable") ? await answer.json().catch(() => null) : null;
  if (problem && problem.code !== "exists") decide(item, problem);
  else retry(item);
}

// --- the user -----------------------------------------------------------------------------------

const find = (/** @type {number} */ id) => items.find((item) => item.id === id);

/** @param {number} id */
export function pause(id) {
  const item = find(id);
  if (!item || !["waiting", "running", "retrying"].includes(item.state)) return;
  stop(item);
  set(item, "paused");
}

/** @param {number} id */
export function resume(id) {
  const item = find(id);
  if (!item || !["paused", "failed"].includes(item.state)) return;
  item.attempt = 0;
  set(item, "waiting");
}

/** @param {number} id */
export function cancel(id) {
  const item = find(id);
  if (!item || ["done", "cancelled"].includes(item.state)) return;
  const { url } = item;
  stop(item);
  forget(item);
  set(item, "cancelled");
  // Else the server removes it when it expires.
  if (url) fetch(url, { method: "DELETE", headers: { "Tus-Resumable": "1.0.0" } }).catch(() => {});
}
