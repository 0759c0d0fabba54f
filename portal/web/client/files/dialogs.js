// Actions on files, with their dialogs: names, destinations, permissions and confirmations.
import { element, messageOf } from "../common/dom.js";
import * as wording from "../common/words.js";
import { counted, encode, nameOf, parentOf } from "../common/words.js";
import * as server from "./ask.js";
import * as destination from "./destination.js";
import * as listing from "./folder.js";
import * as panel from "./panel.js";
import * as selection from "./selection.js";

const dialog = (/** @type {string} */ id) => document.getElementById(id);
const LONGEST = 6000; // characters of an address
const words = (/** @type {Item[]} */ items) => (items.length === 1 ? `“${items[0].name}”` : counted(items.length, "item"));

/** @param {PageElement} box @param {string} text */
export function trouble(box, text) {
  const line = box.querySelector("[role=alert]");
  if (!line) return; // a dialog without errors
  line.textContent = text;
  line.hidden = !text;
}

/**
 * Opens a dialog; `act` runs when its form is sent, and keeps it open by throwing.
 * @template T
 * @param {string} id
 * @param {(value: string) => T | Promise<T>} act gets the value of the button
 * @returns {Promise<T | null>} what it returned; null if the dialog was closed
 */
export function ask(id, act) {
  const box = dialog(id);
  const form = box.querySelector("form");
  trouble(box, "");
  return new Promise((resolve) => {
    /** @type {T | null} */
    let result = null;
    const send = async (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      if (form.dataset.busy) return;
      form.dataset.busy = "yes";
      try {
        result = await act(/** @type {HTMLButtonElement | null} */ (event.submitter)?.value ?? "");
        box.close();
      } catch (error) {
        trouble(box, messageOf(error));
        box.querySelector("input:not([type=checkbox])")?.focus();
      } finally {
        form.removeAttribute("data-busy");
      }
    };
    form.addEventListener("submit", send);
    box.addEventListener("close", () => {
      form.removeEventListener("submit", send);
      resolve(result);
    }, { once: true });
    box.showModal();
  });
}
document.addEventListener("click", (event) => {
  if (event.target.closest?.("dialog [data-cancel]")) event.target.closest("dialog").close();
});

/**
 * Asks for a name, and passes it to `act`.
 * @template T
 * @param {{ title: string, go: string, value?: string, label?: string, note?: string }} words
 * @param {(text: string) => T | Promise<T>} act
 */
export function askName({ title, go, value = "", label = "Name", note = "" }, act) {
  const box = dialog("ask-name");
  const field = document.getElementById("ask-name-field");
  box.querySelector("h2").textContent = title;
  box.querySelector("label").textContent = label;
  box.querySelector("[data-go]").textContent = go;
  const line = box.querySelector("[data-note]");
  line.textContent = note;
  line.hidden = !note;
  field.value = value;
  // A name that somebody types has no spaces around it; one that stays may have them.
  const result = ask("ask-name", () => act(field.value === value ? value : field.value.trim()));
  field.focus();
  const dot = value.lastIndexOf(".");
  field.setSelectionRange(0, dot > 0 ? dot : value.length);
  return result;
}

/** @param {string} title @param {string} text */
export function exists(title, text, several = false) {
  const box = dialog("ask-exists");
  box.querySelector("h2").textContent = title;
  box.querySelector("[data-text]").textContent = text;
  const all = box.querySelector("[data-all]");
  all.hidden = !several;
  all.querySelector("input").checked = false;
  return ask("ask-exists", (value) => ({ value: /** @type {OnConflict} */ (value), all: all.querySelector("input").checked }));
}

// Starts an operation; asks about names that exist, and before others lose a folder by a move or copy.
/** @param {Record<string, unknown> & { kind: string, items: string[] }} body @returns {Promise<Operation | null>} */
export async function operate(body) {
  /** @type {Operation} */
  let started;
  try {
    started = await server.change("operations", "", body);
  } catch (error) {
    if (!(error instanceof server.RequestError)) throw error;
    if (error.code === "exists" && !body.on_conflict) {
      const answer = await exists("It exists already", `${messageOf(error)} Shall those be replaced, kept beside the new ones, or skipped?`);
      return answer && operate({ ...body, on_conflict: answer.value });
    }
    if (error.code !== "shared" || body.kind === "delete") throw error;
    return confirm({ title: "Others lose a folder", go: body.kind === "move" ? "Move" : "Replace", warning: messageOf(error) },
      () => operate({ ...body, end_shares: true }));
  }
  selection.deselect(body.items); // not what was selected while the server answered
  panel.follow(started);
  return started;
}
export const failed = (/** @type {Error} */ error) => panel.note(messageOf(error), true);

export const makeFolder = (/** @type {string} */ parent, title = "New folder") => askName({ title, go: "Create" }, async (/** @type {string} */ text) => {
  const entry = await server.change("folder", `${parent}/${encode(text)}`);
  return entry.path;
});

/** @param {Item} item */
export async function rename(item, { note = "" } = {}) {
  const box = dialog("ask-name");
  const asked = askName({ title: `Rename “${item.name}”`, go: "Rename", value: item.name, note },
    (/** @type {string} */ text) => (text === item.name ? item : server.change("rename", item.path, { name: text })));
  uses([item]).then(({ renamed }) => {
    const line = box.querySelector("[data-note]");
    if (!box.open || !renamed) return;
    line.textContent = `${renamed} ${note}`;
    line.hidden = false;
  });
  return (await asked)?.path;
}

// Counts the files below folders while a confirmation is open.
/**
 * @param {Item[]} items
 * @param {(text: string) => void} show
 * @param {() => boolean} isOpen
 */
async function count(items, show, isOpen) {
  const folders = items.filter((item) => item.folder);
  const sums = new Map();
  const plain = items.length - folders.length;
  while (isOpen()) {
    for (const folder of folders) {
      if (!sums.get(folder.path)?.complete) sums.set(folder.path, await server.get("usage", folder.path).catch(() => ({ complete: true, files: 0, bytes: 0, folders: 0 })));
    }
    const all = [...sums.values()];
    const files = all.reduce((sum, usage) => sum + usage.files, plain);
    const bytes = all.reduce((sum, usage) => sum + usage.bytes, items.reduce((sum, item) => sum + (item.size || 0), 0));
    const complete = all.every((usage) => usage.complete);
    show(`${counted(files, "file")}${folders.length ? ` in ${counted(all.reduce((sum, usage) => sum + usage.folders, folders.length), "folder")}` : ""}, ${wording.size(bytes)}${complete ? "" : " so far, still counting…"}`);
    if (complete) return;
    await new Promise((then) => setTimeout(then, 700));
  }
}

/**
 * Asks before something that cannot be undone; `act` does it.
 * @template T
 * @param {{ title: string, go: string, names?: string[], text?: string, warning?: string }} words
 * @param {() => T | Promise<T>} act
 */
export function confirm({ title, go, names = [], text = "", warning = "" }, act) {
  const box = dialog("ask-delete");
  box.querySelector("h2").textContent = title;
  const list = box.querySelector(".end-names");
  list.hidden = names.length < 2;
  list.replaceChildren(...names.slice(0, 200).map((name) => element("li", "", name)));
  const line = box.querySelector("[data-warning]");
  line.textContent = warning;
  line.hidden = !warning;
  box.querySelector("[data-go]").textContent = go;
  box.querySelector("[data-count]").textContent = text;
  return ask("ask-delete", act);
}

const MOST_FOLDERS = 10;

/**
 * Who loses something with these items, and what new names mean for them; `known`: there can be nobody else.
 * @param {Item[]} items
 */
async function uses(items) {
  const own = items.filter(({ path }) => path.startsWith("storage/"));
  const places = [...new Set(own.map(({ path }) => path.split("/").slice(0, 3).join("/")))];
  const all = await Promise.all(places.slice(0, MOST_FOLDERS).map((path) => server.get("uses", path).catch(() => null)));
  const words = (/** @type {string} */ key) => [...new Set(all.map((use) => use?.[key]).filter(Boolean))].join(" ");
  return { lost: words("lost"), renamed: words("renamed"), known: all.every(Boolean) && places.length <= MOST_FOLDERS };
}

/** @param {Item[]} items */
export async function remove(items) {
  const box = dialog("ask-delete");
  const [total, line] = [box.querySelector("[data-count]"), box.querySelector("[data-warning]")];
  const names = items.map((item) => `${item.name}${item.folder ? "/" : ""}`);
  let told = false; // who loses what, before the button is pressed
  const result = confirm({ title: `Delete ${words(items)}?`, go: "Delete for good", names }, async () => {
    try {
      return await operate({ kind: "delete", items: items.map((item) => item.path), end_shares: told });
    } catch (error) {
      told ||= error instanceof server.RequestError && error.code === "shared";
      throw error; // the dialog shows it, and stays open
    }
  });
  count(items, (/** @type {string} */ text) => { total.textContent = `${text}. This cannot be undone.`; }, () => box.open);
  uses(items).then(({ lost, known }) => {
    if (!box.open || !lost) return;
    told = known;
    line.textContent = lost;
    line.hidden = false;
  });
  return result;
}

/** @param {Item[]} items */
async function mode(items) {
  const box = dialog("ask-mode");
  const field = document.getElementById("ask-mode-field");
  const boxes = [...box.querySelectorAll("[data-bit]")];
  const draw = () => {
    const number = parseInt(field.value, 8) || 0;
    for (const bit of boxes) bit.checked = Boolean(number & Number(bit.dataset.bit));
  };
  box.querySelector("h2").textContent = `Permissions of ${words(items)}`;
  box.querySelector("[data-note]").textContent = items.some((item) => item.folder) ? "Folders: everything in them gets the same; files get “Execute” only where they had it." : "";
  field.value = (items[0].mode ?? "").slice(-3);
  draw();
  field.oninput = draw;
  for (const changedBox of boxes) {
    changedBox.onchange = () => {
      field.value = boxes.reduce((sum, bit) => sum + (bit.checked ? Number(bit.dataset.bit) : 0), 0).toString(8).padStart(3, "0");
    };
  }
  return ask("ask-mode", () => operate({ kind: "mode", items: items.map((item) => item.path), mode: field.value }));
}

/** @param {Item[]} items */
async function download(items) {
  if (items.length === 1 && !items[0].folder) return fetchFile(`/data/files/${items[0].path}?download`);
  const box = dialog("ask-format");
  box.querySelector("h2").textContent = `Download ${words(items)}`;
  const format = await ask("ask-format", (/** @type {string} */ value) => value);
  if (!format) return null;
  if (items.length === 1) return fetchFile(`/data/archive/${items[0].path}?format=${format}`);
  const parents = new Set(items.map((item) => parentOf(item.path)));
  if (parents.size > 1) throw new Error("These are in different folders. Select those of one folder to download them together.");
  const [parent] = parents;
  const names = items.map((item) => item.path.slice(parent.length + 1).replaceAll("+", "%2B"));
  const address = `/data/archive/${parent}?format=${format}&${names.map((name) => `name=${name}`).join("&")}`;
  return address.length < LONGEST ? fetchFile(address) : sendNames(parent, format, names);
}

// Sends more names than a URL can hold as a form, which is limited to UTF-8.
/** @param {string} parent @param {string} format @param {string[]} names */
async function sendNames(parent, format, names) {
  const form = element("form");
  Object.assign(form, { method: "post", action: `/data/archive/${parent}`, target: "_blank", rel: "noopener", hidden: true });
  try {
    for (const [key, value] of [["format", format], ...names.map((name) => ["name", decodeURIComponent(name)])]) {
      const field = element("input");
      Object.assign(field, { type: "hidden", name: key, value });
      form.append(field);
    }
  } catch {
    throw new Error("Some of these names are not in UTF-8: download the whole folder, or fewer of them at once.");
  }
  await server.admit().catch(() => {});
  document.body.append(form);
  form.submit();
  form.remove();
  return true;
}

// Starts a download by the browser, once the file server runs.
/** @param {string} address */
async function fetchFile(address) {
  await server.admit().catch(() => {});
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
  wording.say("The download begins.");
  return true;
}

/** @type {Record<string, (items: Item[]) => Promise<unknown>>} */
const kinds = {
  folder: async () => {
    const path = await makeFolder(listing.currentFolder());
    if (path) listing.refresh(path);
  },
  file: async () => {
    const path = await askName({ title: "New text file", go: "Create and edit", value: "new.txt" }, async (/** @type {string} */ text) => {
      const at = `${listing.currentFolder()}/${encode(text)}`;
      await server.bytes(`/data/files/${at}`, { method: "PUT", body: "", headers: { "If-None-Match": "*" } });
      return at;
    });
    if (path) listing.go(`/files/${path}?view&edit`);
  },
  rename: async (/** @type {Item[]} */ [item]) => {
    const path = await rename(item);
    if (path) listing.refresh(path);
  },
  copy: (/** @type {Item[]} */ items) => destination.choose("Copy", items).then((to) => (to ? operate({ kind: "copy", items: items.map((item) => item.path), to }) : null)),
  move: (/** @type {Item[]} */ items) => destination.choose("Move", items).then((to) => (to ? operate({ kind: "move", items: items.map((item) => item.path), to }) : null)),
  unpack: async (/** @type {Item[]} */ items) => {
    const paths = items.map((item) => item.path);
    if (!selection.mayChange()) { // nothing can be put beside them
      const to = await destination.choose("Unpack", items);
      return to ? operate({ kind: "unpack", items: paths, to }) : null;
    }
    for (const parent of new Set(paths.map(parentOf))) await operate({ kind: "unpack", items: paths.filter((path) => parentOf(path) === parent) });
    return null;
  },
  fetch: () => {
    const form = dialog("ask-fetch").querySelector("form");
    form.reset();
    const to = listing.currentFolder();
    return ask("ask-fetch", () => operate({ kind: "fetch", to, items: [], ...Object.fromEntries(new FormData(form)) }));
  },
  delete: (/** @type {Item[]} */ items) => remove(items),
  mode, download,
  usage: async () => {
    const folder = { path: listing.currentFolder(), name: "", folder: true, size: 0 };
    const id = "usage";
    panel.put(id, { title: `Counting “${listing.folder().dataset.name}”`, state: "running", share: null });
    let open = true;
    await count([folder], (/** @type {string} */ text) => panel.put(id, { title: `“${nameOf(folder.path)}”: ${text}`, state: text.endsWith("…") ? "running" : "good", share: null, icon: "pie-chart" }), () => open);
    open = false;
  },
};
const NEED = new Set(["rename", "copy", "move", "delete", "mode", "download", "unpack"]);

/** @param {string} kind */
export function act(kind) {
  const items = NEED.has(kind) ? selection.list() : [];
  if (NEED.has(kind) && !items.length) return;
  Promise.resolve(kinds[kind](items)).catch(failed);
}
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-do]");
  if (button) act(button.dataset.do);
});
