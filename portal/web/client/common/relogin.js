// Handles a login that expires while a page is in use: asks for the password in a dialog, or for a log-in
// at the OpenID provider in another tab, then repeats the failed request. A login of the same user in another
// tab counts as well.
import htmx from "htmx.org";

const dialog = document.getElementById("relogin");
const problem = dialog.querySelector("[data-relogin-problem]");
const password = document.getElementById("relogin-password"); // null where passwords are not accepted
const code = document.getElementById("relogin-code"); // only where the site requires one
const provider = dialog.querySelector("[data-relogin-provider]");
const user = dialog.dataset.user;
const HEADERS = { "HX-Request": "true" }; // else the response is the login page
let waiting = null; // the promise of the open dialog

/** @param {string} text */
function say(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

// Forms of this page get the token of the new login.
/** @param {string} token */
function renew(token) {
  for (const field of document.querySelectorAll("[name=csrf_token]")) field.value = token;
}

const token = () => document.querySelector("[name=csrf_token]").value;

// Fetches the state of the login; if it is this user's, updates the tokens of forms.
async function isBack() {
  const answer = await fetch("/login/state", { headers: HEADERS });
  const state = await answer.json();
  if (state.user === user) renew(state.csrf_token);
  return state;
}

async function check() {
  const state = await isBack().catch(() => null);
  if (!dialog.open || !state) return;
  if (state.user === user) dialog.close("back");
  else if (state.user) say(`This browser is now logged in as ${state.user}. To go on here, log in as ${user}.`);
}

// A dialog that opened between press and release would swallow the click.
let pressed = false;
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => { pressed = false; }, true);
const released = () => new Promise((resolve) => {
  const look = () => (pressed ? setTimeout(look, 20) : setTimeout(resolve));
  look();
});

// Resolves to true once the user is logged in again, to false if the dialog is closed.
function ask() {
  waiting ??= released().then(() => new Promise((resolve) => {
    say("");
    if (password) password.value = "";
    if (code) code.value = "";
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      waiting = null;
      resolve(dialog.returnValue === "back");
    }, { once: true });
    dialog.showModal();
    (provider ?? password).focus();
  }));
  return waiting;
}

// Whether a request that failed with 401, or with 400 for a stale token, can be repeated.
/** @param {number} status */
async function again(status) {
  const before = token();
  const state = await isBack().catch(() => null);
  if (state?.user === user) return status === 401 || token() !== before;
  return state ? ask() : false;
}

dialog.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!password) return;
  const button = dialog.querySelector("[type=submit]");
  button.disabled = true;
  try {
    const { csrf_token } = await (await fetch("/login/state", { headers: HEADERS })).json();
    const body = new URLSearchParams({ csrf_token, username: user, password: password.value });
    if (code) body.set("code", code.value);
    const answer = await fetch("/login/again", { method: "POST", body, headers: HEADERS });
    const result = await answer.json();
    if (answer.ok) {
      renew(result.csrf_token);
      dialog.close("back");
    } else say(result.problem);
  } catch {
    say("The portal did not answer. Try again in a moment.");
  }
  button.disabled = false;
  if (dialog.open) password.select();
});
dialog.querySelector("[data-relogin-cancel]").addEventListener("click", () => dialog.close());
addEventListener("focus", () => dialog.open && check());
new BroadcastChannel("slipway-login").addEventListener("message", () => dialog.open && check());
document.addEventListener("visibilitychange", () => dialog.open && !document.hidden && check());

// Sends a script's request; `make` creates it for each attempt, with the current token.
/** @param {(headers: Record<string, string>) => Promise<Response>} make */
export async function send(make) {
  const answer = await make(HEADERS);
  if (answer.status !== 401 && answer.status !== 400) return answer;
  return (await again(answer.status)) ? make(HEADERS) : answer;
}

export const post = (/** @type {string} */ address, /** @type {() => URLSearchParams | FormData} */ body) => send((/** @type {Record<string, string>} */ headers) => fetch(address, { method: "POST", body: body(), headers }));

const resent = new WeakSet();
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { xhr, elt, target, requestConfig } = event.detail;
  if ((xhr.status !== 401 && xhr.status !== 400) || resent.has(elt)) return;
  event.preventDefault();
  again(xhr.status).then((fine) => {
    if (!fine) {
      elt.dispatchEvent(new CustomEvent("slipway:refused", { bubbles: true, detail: { elt } }));
      return;
    }
    resent.add(elt);
    htmx.ajax(requestConfig.verb, requestConfig.path, { source: elt, target }).finally(
      () => resent.delete(elt));
  });
});
