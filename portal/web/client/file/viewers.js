// Viewers that need a library: PDF, tables, notebooks and Markdown. A file's HTML is sanitised, and shown in
// a frame where no script can run.
import { element } from "../common/dom.js";
import { counted, size } from "../common/words.js";
import * as viewer from "./file.js";
import { address, assets, load, note, onClose, put, read, viewers } from "./file.js";
import * as server from "../files/ask.js";

const MOST_ROWS = 1000;
const MOST_COLUMNS = 200;
const MOST_NOTEBOOK = 30 * 1024 * 1024;

/** @type {typeof import("../libraries/viewers.js")} */
let parts; // the libraries, imported on demand
async function libraries() {
  parts = await load(import("../libraries/viewers.js"));
}

viewers.table = async () => {
  const [content] = await Promise.all([read(4 * 1024 * 1024), libraries()]);
  const { data } = parts.papa.parse(content.text, {
    preview: MOST_ROWS + 1, skipEmptyLines: true, delimiter: /\.(tsv|tab)$/i.test(viewer.page().dataset.name) ? "\t" : "",
  });
  return () => {
    if (!data.length) {
      note("This table is empty.");
      put();
      return;
    }
    const columns = Math.min(MOST_COLUMNS, Math.max(...data.slice(0, 100).map((row) => row.length)));
    const table = element("table", "data");
    const line = (/** @type {string[]} */ cells, /** @type {"td" | "th"} */ tag, /** @type {string} */ label) => {
      const row = element("tr");
      const head = element(label === "" ? "td" : "th", "number", label);
      if (label !== "") head.scope = "row";
      row.append(head);
      for (let index = 0; index < columns; index += 1) {
        const cell = element(tag, "", cells[index] ?? "");
        if (tag === "th") cell.scope = "col";
        else if (cells[index] && !Number.isNaN(Number(cells[index]))) cell.className = "is-number";
        row.append(cell);
      }
      return row;
    };
    const [head, body] = [element("thead"), element("tbody")];
    head.append(line(data[0], "th", ""));
    body.append(...data.slice(1, MOST_ROWS + 1).map((row, index) => line(row, "td", String(index + 1))));
    table.append(head, body);
    const box = element("div", "table-view");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Table");
    box.append(table);
    put(box);
    const isCut = !content.complete || data.length > MOST_ROWS;
    note(`${isCut ? `The first ${counted(data.length - 1, "row")}` : counted(data.length - 1, "row")}, ${counted(columns, "column")}.${isCut ? " Download it to see all." : ""}`);
  };
};

viewers.pdf = async () => {
  await server.bytes(address(), { method: "HEAD" });
  const pdf = await load(import("pdfjs-dist/legacy/build/pdf.min.mjs"));
  pdf.GlobalWorkerOptions.workerSrc = assets.pdfWorker;
  const task = pdf.getDocument({ url: address(), enableXfa: false, useSystemFonts: true, useWasm: false, rangeChunkSize: 1024 * 1024 });
  let file;
  try {
    file = await task.promise;
  } catch (error) {
    throw new Error(error instanceof Error && error.name === "PasswordException" ? "This PDF is protected by a password. Download it to open it." : "This PDF cannot be read. Download it to look at it.");
  }
  return async () => {
    onClose(() => task.destroy());
    const first = (await file.getPage(1)).getViewport({ scale: 1 });
    const pages = element("div", "pdf");
    const observer = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        draw(file, /** @type {HTMLCanvasElement} */ (target)).catch(() => {});
      }
    }, { rootMargin: "800px" });
    for (let number = 1; number <= file.numPages; number += 1) {
      const canvas = element("canvas");
      canvas.dataset.page = String(number);
      [canvas.width, canvas.height] = [first.width, first.height];
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `Page ${number} of ${file.numPages}`);
      pages.append(canvas);
      observer.observe(canvas);
    }
    put(pages);
    note(counted(file.numPages, "page"));
  };
};

/** @param {import("pdfjs-dist").PDFDocumentProxy} file @param {HTMLCanvasElement} canvas */
async function draw(file, canvas) {
  const page = await file.getPage(Number(canvas.dataset.page));
  const wide = Math.min((canvas.parentElement?.clientWidth ?? 0), 1100) || 800;
  const base = page.getViewport({ scale: 1 });
  const viewport = page.getViewport({ scale: Math.min(4, (wide / base.width) * Math.min(devicePixelRatio, 2)) });
  [canvas.width, canvas.height] = [viewport.width, viewport.height];
  await page.render({ canvasContext: canvas.getContext("2d") ?? undefined, viewport, canvas }).promise;
  canvas.dataset.drawn = "yes";
}

// Sanitised HTML in a separate frame: no scripts, no forms, another origin. It loads nothing from elsewhere,
// since the page's policy applies there as well.
/** @param {string} html @param {string} label */
function frame(html, label) {
  const node = element("iframe", "document");
  node.setAttribute("sandbox", "");
  node.title = label;
  const theme = document.documentElement.dataset.bsTheme ?? "light";
  node.srcdoc = `<!doctype html><html lang="en" data-bs-theme="${theme}"><head><meta charset="utf-8"><title>${label}</title><link rel="stylesheet" href="${assets.notebook}"></head><body>${html}</body></html>`;
  return node;
}
const clean = (/** @type {string} */ html) => parts.purify.sanitize(html, {
  FORBID_TAGS: ["style", "form", "input", "button", "textarea", "select", "video", "audio"], FORBID_ATTR: ["style", "id", "name", "target"],
});
const escaped = (/** @type {string} */ text) => {
  const line = element("p", "", text);
  return line.innerHTML.replaceAll('"', "&quot;");
};
const markdown = (/** @type {string} */ text) => clean(parts.marked.parse(text, { gfm: true, async: false }));
const joined = (/** @type {unknown} */ value) => (Array.isArray(value) ? value.join("") : String(value ?? ""));

viewers.markdown = async () => {
  const [content] = await Promise.all([read(2 * 1024 * 1024), libraries()]);
  return () => {
    put(frame(markdown(content.text), "Formatted text"));
    note(content.complete ? "" : `The first ${size(2 * 1024 * 1024)}.`);
  };
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of colours begin with one.
const plain = (/** @type {string} */ text) => escaped(text.replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, ""));

/** @param {Output} item */
function output(item) {
  if (item.output_type === "stream") return `<pre class="out ${item.name === "stderr" ? "err" : ""}">${plain(joined(item.text))}</pre>`;
  if (item.output_type === "error") return `<pre class="out err">${plain(joined(item.traceback?.map?.((/** @type {string} */ line) => `${line}\n`)) || `${item.ename}: ${item.evalue}`)}</pre>`;
  const data = item.data ?? {};
  for (const kind of ["image/png", "image/jpeg", "image/gif"]) {
    const text = joined(data[kind]).replaceAll(/\s/g, "");
    if (text && /^[A-Za-z0-9+/=]+$/.test(text)) return `<img alt="Output" src="data:${kind};base64,${text}">`;
  }
  if (data["image/svg+xml"]) return `<img alt="Output" src="data:image/svg+xml;charset=utf-8,${encodeURIComponent(joined(data["image/svg+xml"]))}">`;
  if (data["text/html"]) return `<div class="out html">${clean(joined(data["text/html"]))}</div>`;
  if (data["text/markdown"]) return `<div class="out html">${markdown(joined(data["text/markdown"]))}</div>`;
  return data["text/plain"] ? `<pre class="out">${plain(joined(data["text/plain"]))}</pre>` : "";
}

/** @param {Cell} item */
function cell(item) {
  const source = joined(item.source);
  if (item.cell_type === "markdown") return `<section class="md">${markdown(source)}</section>`;
  if (item.cell_type !== "code") return `<section><pre>${escaped(source)}</pre></section>`;
  const outputs = (item.outputs ?? []).map(output).join("");
  return `<section class="code"><span class="label">[${item.execution_count === null || item.execution_count === undefined ? " " : Number(item.execution_count)}]</span><div><pre class="in">${escaped(source)}</pre>${outputs}</div></section>`;
}

viewers.notebook = async () => {
  const [content] = await Promise.all([read(MOST_NOTEBOOK), libraries()]);
  if (!content.complete) throw new Error(`Notebooks of up to ${size(MOST_NOTEBOOK)} can be shown. Download it, or open it in JupyterLab.`);
  let book;
  try {
    book = JSON.parse(content.text);
  } catch {
    throw new Error("This notebook cannot be read: its JSON is broken. Look at it as text.");
  }
  const cells = book.cells ?? book.worksheets?.[0]?.cells;
  if (!Array.isArray(cells)) throw new Error("This is not a notebook: it has no cells. Look at it as text.");
  return () => {
    put(frame(cells.map(cell).join(""), "Notebook"));
    note(`${counted(cells.length, "cell")}, with the results of when it was saved. Nothing in it is run here.`);
  };
};
