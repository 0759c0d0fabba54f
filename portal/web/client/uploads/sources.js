// Files to upload: chosen, dropped with their folders, and kept over a reload where the browser can.
//
//   slipwayUploadFiles.pick({folder: true})      a dialog; resolves to files for queue.add
//   slipwayUploadFiles.dropped(dataTransfer)     call it in the event's handler; resolves to files
//   slipwayUploadFiles.kept()                    uploads of an earlier page, [{target, name}]
//   slipwayUploadFiles.goOn()                    continue them; call it in a click, since the browser may ask
import * as queue from "./queue.js";

const STORE = "files";

// --- handles in IndexedDB: a handle lets a page read the file again without choosing it ------------

function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("slipway-uploads", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "target" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest} work */
async function stored(mode, work) {
  const database = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

// Without storage only the convenience is missing: the user picks the files again.
export const keep = ({ handle, target, name }) => (handle
  ? stored("readwrite", (/** @type {IDBObjectStore} */ store) => store.put({ handle, target, name })).catch(() => {}) : undefined);
export const drop = ({ handle, target }) => (handle
  ? stored("readwrite", (/** @type {IDBObjectStore} */ store) => store.delete(target)).catch(() => {}) : undefined);
export const kept = () => stored("readonly", (/** @type {IDBObjectStore} */ store) => store.getAll()).catch(() => []);

export async function goOn() {
  for (const { handle, target } of await kept()) {
    try {
      if (await handle.requestPermission({ mode: "read" }) !== "granted") continue;
      const file = await handle.getFile();
      const [folder, name] = [target.slice(0, target.lastIndexOf("/")), target.slice(target.lastIndexOf("/") + 1)];
      queue.add([{ file, path: decodeURIComponent(name), handle }], folder);
    } catch {
      await drop({ handle, target }); // deleted or moved meanwhile
    }
  }
}

// --- choosing ----------------------------------------------------------------------------------

export async function pick({ folder = false } = {}) {
  if (!folder && globalThis.showOpenFilePicker) {
    const handles = await showOpenFilePicker({ multiple: true }).catch(() => []);
    return Promise.all(handles.map(fromHandle));
  }
  return new Promise((resolve) => {
    const input = document.createElement("input");
    Object.assign(input, { type: "file", multiple: true, webkitdirectory: folder });
    input.onchange = () => resolve([...input.files]);
    input.oncancel = () => resolve([]);
    input.click();
  });
}

const fromHandle = async (/** @type {any_handle} */ handle) => ({ file: await handle.getFile(), path: handle.name, handle });

// --- dropping ----------------------------------------------------------------------------------

// What is dropped can be looked at only until the event's handler has returned.
/** @param {DataTransfer} transfer */
export function dropped(transfer) {
  const parts = [...transfer.items].filter(({ kind }) => kind === "file");
  if (parts[0]?.getAsFileSystemHandle) {
    // A picture dragged from another page is a file without a handle.
    return collected(parts.map((part) => [part.getAsFileSystemHandle(), part.getAsFile()]).map(
      ([handle, file]) => handle.then((/** @type {any} */ found) => (found ? ofHandle(found, "") : [{ file, path: file.name }]))));
  }
  return collected(parts.map((part) => ofEntry(part.webkitGetAsEntry())));
}

const collected = async (/** @type {Promise<Chosen[]>[]} */ lists) => (await Promise.all(lists)).flat();

/** @param {any_handle} handle @param {string} above */
async function ofHandle(handle, above) {
  const path = above + handle.name;
  if (handle.kind === "file") return [{ ...await fromHandle(handle), path }];
  const found = [];
  for await (const inner of handle.values()) found.push(...await ofHandle(inner, `${path}/`));
  return found;
}

/**
 * @param {FileSystemEntry} entry
 */
async function ofEntry(entry) {
  const path = entry.fullPath.replace(/^\/+/, "");
  if (entry.isFile) return [{ file: await new Promise((done, fail) => { entry.file(done, fail); }), path }];
  const found = [];
  const reader = entry.createReader();
  for (;;) { // a reader gives up to 100 entries at a time
    const some = await new Promise((done, fail) => { reader.readEntries(done, fail); });
    if (!some.length) return found;
    for (const inner of some) found.push(...await ofEntry(inner));
  }
}
