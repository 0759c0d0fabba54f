// Files to upload: chosen, dropped with their folders, and stored over a reload where the browser permits it.
import * as queue from "./queue.js";

const STORE = "files";

// --- handles in IndexedDB: a handle lets a page read the file again without choosing it ------------

/** @returns {Promise<IDBDatabase>} */
function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("slipway-uploads", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "target" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/**
 * @template T
 * @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest<T>} work
 * @returns {Promise<T>}
 */
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

/** @typedef {{ handle?: FileSystemFileHandle, target: string, name: string }} StoredFile */

// Without storage, the user has to choose the files again.
/** @param {StoredFile} file */
export const keep = ({ handle, target, name }) => (handle
  ? stored("readwrite", (store) => store.put({ handle, target, name })).catch(() => {}) : undefined);
/** @param {Pick<StoredFile, "handle" | "target">} file */
export const drop = ({ handle, target }) => (handle
  ? stored("readwrite", (store) => store.delete(target)).catch(() => {}) : undefined);
/** The files of unfinished uploads. @returns {Promise<Required<StoredFile>[]>} */
export const storedFiles = () => stored("readonly", (store) => store.getAll()).catch(() => []);

// Continues unfinished uploads; must be called in a click, since the browser may ask for permission.
export async function goOn() {
  for (const { handle, target } of await storedFiles()) {
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

/** Lets the user choose files, or a folder. @returns {Promise<(File | Chosen)[]>} */
export async function pick({ folder = false } = {}) {
  if (!folder && "showOpenFilePicker" in globalThis) {
    const handles = await showOpenFilePicker({ multiple: true }).catch(() => []);
    return Promise.all(handles.map(fromHandle));
  }
  return new Promise((resolve) => {
    const input = document.createElement("input");
    Object.assign(input, { type: "file", multiple: true, webkitdirectory: folder });
    input.onchange = () => resolve([...(input.files ?? [])]);
    input.oncancel = () => resolve([]);
    input.click();
  });
}

/** @param {FileSystemFileHandle} handle @returns {Promise<Chosen>} */
const fromHandle = async (handle) => ({ file: await handle.getFile(), path: handle.name, handle });

// --- dropping ----------------------------------------------------------------------------------

// A drop's items can be read only until the event's handler has returned.
/** @param {DataTransfer} transfer */
export function dropped(transfer) {
  const parts = [...transfer.items].filter(({ kind }) => kind === "file");
  if (parts[0]?.getAsFileSystemHandle) return collected(parts.map(ofPart));
  return collected(parts.map((part) => part.webkitGetAsEntry()).filter((entry) => entry !== null).map(ofEntry));
}

// A picture dragged from another page is a file without a handle.
/** @param {DataTransferItem} part @returns {Promise<Chosen[]>} */
function ofPart(part) {
  const [handle, file] = [part.getAsFileSystemHandle?.(), part.getAsFile()];
  return Promise.resolve(handle).then((value) => (value ? ofHandle(value, "") : file ? [{ file, path: file.name }] : []));
}

const collected = async (/** @type {Promise<Chosen[]>[]} */ lists) => (await Promise.all(lists)).flat();

/** @param {FileSystemHandle} handle @param {string} above @returns {Promise<Chosen[]>} */
async function ofHandle(handle, above) {
  const path = above + handle.name;
  if (handle.kind === "file") return [{ ...await fromHandle(/** @type {FileSystemFileHandle} */ (handle)), path }];
  const files = [];
  for await (const inner of /** @type {FileSystemDirectoryHandle} */ (handle).values()) files.push(...await ofHandle(inner, `${path}/`));
  return files;
}

/** @param {FileSystemEntry} entry @returns {Promise<Chosen[]>} */
async function ofEntry(entry) {
  const path = entry.fullPath.replace(/^\/+/, "");
  if (entry.isFile) return [{ file: await fileOf(/** @type {FileSystemFileEntry} */ (entry)), path }];
  const files = [];
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) { // a reader gives up to 100 entries at a time
    const some = await read(reader);
    if (!some.length) return files;
    for (const inner of some) files.push(...await ofEntry(inner));
  }
}

/** @param {FileSystemFileEntry} entry @returns {Promise<File>} */
const fileOf = (entry) => new Promise((resolve, reject) => { entry.file(resolve, reject); });

/** @param {FileSystemDirectoryReader} reader @returns {Promise<FileSystemEntry[]>} */
const read = (reader) => new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
