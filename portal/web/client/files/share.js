// Sharing a storage folder: lists its shares, adds and revokes them.
import { element, textFields, icon, messageOf } from "../common/dom.js";
import * as relogin from "../common/relogin.js";
import * as wording from "../common/words.js";
import * as server from "./ask.js";
import * as dialogs from "./dialogs.js";
import * as listing from "./folder.js";

const box = document.getElementById("ask-share");
const list = box.querySelector("[data-shares]");
const form = box.querySelector("form");
/** @type {Record<string, string>} */
const CHANGES = { giving: ", is being set up", ending: ", is being taken back" };
let folder = ""; // its name as in a location
let changed = false;
/** Number of the last request for shares: the answer to an older one may come after its answer. */
let lastRequest = 0;

const address = () => `/files-shares/${folder}`;

/** @param {{ shares: Share[], change?: { problem?: string, running?: boolean, others?: { count: number } } }} answer */
function draw({ shares, change }) {
  list.replaceChildren(...shares.map((share) => {
    const item = element("li");
    const words = element("span");
    words.append(element("bdi", "", wording.visible(share.name)), element("span", "sub", ` ${share.kind}, may ${share.access === "write" ? "read and change" : "read"}${CHANGES[share.state] ?? ""}`));
    const back = element("button", "btn btn-quiet btn-small", "Take back");
    back.type = "button";
    back.setAttribute("aria-label", `Take back from ${share.name}`);
    back.addEventListener("click", () => send({ kind: share.kind, name: share.name, access: "" }));
    item.append(icon(share.kind === "group" ? "people-fill" : "person-fill"), words, back);
    return item;
  }));
  if (!shares.length) list.replaceChildren(element("li", "sub", "Shared with nobody."));
  if (change?.problem) dialogs.trouble(box, change.problem);
  else if (change?.others?.count) dialogs.trouble(box, `${wording.counted(change.others.count, "file")} in it belong to somebody else, and keep their permissions.`);
  if (change?.running && box.open) setTimeout(show, 1500);
}

function show() {
  const request = ++lastRequest;
  return server.read(fetchShares()).then((answer) => { if (request === lastRequest) draw(answer); })
    .catch((/** @type {unknown} */ error) => { if (request === lastRequest) dialogs.trouble(box, messageOf(error)); });
}
const fetchShares = () => relogin.send((headers) => fetch(address(), { headers }));

/** @param {Record<string, string>} values */
async function send(values) {
  dialogs.trouble(box, "");
  try {
    await server.read(relogin.post(address(), () => new URLSearchParams({ csrf_token: server.token(), ...values })));
    changed = true;
    form.elements.name.value = "";
    wording.say(values.access ? `Shared with ${values.name}.` : `Taken back from ${values.name}.`);
  } catch (error) {
    dialogs.trouble(box, messageOf(error));
    return;
  }
  await show();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send(Object.fromEntries(textFields(form)));
});
box.addEventListener("close", () => { if (changed) listing.refresh(); });
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-storage-share]");
  if (!button) return;
  folder = button.dataset.path.split("/")[1];
  changed = false;
  box.querySelector("h2").textContent = `Share “${button.dataset.name}”`;
  list.replaceChildren();
  dialogs.trouble(box, "");
  box.showModal();
  form.elements.name.focus();
  show();
});
