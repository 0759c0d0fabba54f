// Types of elements of the templates, and of htmx.

/**
 * An element of a template, as returned by querySelector and similar methods. The type check knows neither its
 * tag nor whether it exists: modules access elements that may be missing with ?. or an if.
 */
interface PageElement extends HTMLElement {
  accept: string;
  action: string;
  checked: boolean;
  clientWidth: number;
  content: DocumentFragment;
  dataset: Record<string, string>;
  dateTime: string;
  defaultChecked: boolean;
  defaultValue: string;
  disabled: boolean;
  elements: Record<string, PageElement> & { [Symbol.iterator](): Iterator<PageElement> };
  firstChild: ChildNode;
  firstElementChild: PageElement;
  form: PageElement & HTMLFormElement;
  formAction: string;
  href: string;
  indeterminate: boolean;
  label: string;
  lastElementChild: PageElement;
  max: string;
  method: string;
  name: string;
  nextElementSibling: PageElement;
  open: boolean;
  options: PageElement[];
  parentElement: PageElement;
  placeholder: string;
  previousElementSibling: PageElement;
  returnValue: string;
  selectedOptions: PageElement[];
  selectionStart: number;
  type: string;
  value: string;
  readonly children: HTMLCollectionOf<PageElement>;
  close(returnValue?: string): void;
  requestSubmit(submitter?: HTMLElement | null): void;
  select(): void;
  setSelectionRange(start: number, end: number): void;
  showModal(): void;
  submit(): void;
}

interface ParentNode {
  querySelector<K extends keyof HTMLElementTagNameMap>(selectors: K): HTMLElementTagNameMap[K] & PageElement;
  querySelector(selectors: string): PageElement;
  querySelectorAll(selectors: string): NodeListOf<PageElement>;
}

interface NonElementParentNode {
  getElementById(id: string): PageElement;
}

interface Document {
  getElementById(id: string): PageElement;
}

interface Element {
  closest(selectors: string): PageElement;
}

/** An event, whose target is an element of a template. */
type PageEvent<E> = Omit<E, "target" | "relatedTarget" | "submitter" | "dataTransfer"> & {
  /** There is always one, but in events that scripts make. */
  dataTransfer: DataTransfer;
  target: PageElement;
  relatedTarget: PageElement | null;
  submitter: PageElement | null;
};

/** Details of a request by htmx; each event has some of them. */
interface HtmxDetail {
  elt: PageElement;
  target: PageElement;
  xhr: XMLHttpRequest;
  shouldSwap: boolean;
  isError: boolean;
  path: string;
  headers: Record<string, string>;
  parameters: Record<string, string>;
  requestConfig: { verb: "get" | "post"; path: string };
  issueRequest(skipConfirmation?: boolean): void;
}

type HtmxEvent = PageEvent<CustomEvent<HtmxDetail>>;
type Options = boolean | AddEventListenerOptions;

interface Document {
  addEventListener<K extends keyof DocumentEventMap>(type: K, listener: (event: PageEvent<DocumentEventMap[K]>) => unknown, options?: Options): void;
  addEventListener(type: string, listener: (event: HtmxEvent) => unknown, options?: Options): void;
}

interface HTMLElement {
  addEventListener<K extends keyof HTMLElementEventMap>(type: K, listener: (event: PageEvent<HTMLElementEventMap[K]>) => unknown, options?: Options): void;
  addEventListener(type: string, listener: (event: HtmxEvent) => unknown, options?: Options): void;
}

declare module "idiomorph/dist/idiomorph.esm.js" {
  export const Idiomorph: {
    morph(target: Node, content: HTMLCollection, options: { morphStyle: "innerHTML" | "outerHTML" }): Node[];
  };
}

declare module "pdfjs-dist/legacy/build/pdf.min.mjs" {
  export * from "pdfjs-dist";
}

// Where browsers have it: handles of files, which a page may read again after a reload.
interface FileSystemHandle {
  requestPermission(options: { mode: "read" | "readwrite" }): Promise<PermissionState>;
}

interface DataTransferItem {
  getAsFileSystemHandle?(): Promise<FileSystemHandle | null>;
}

declare function showOpenFilePicker(options: { multiple: boolean }): Promise<FileSystemFileHandle[]>;

declare module "papaparse" {
  const papa: {
    parse(text: string, options: { preview: number; skipEmptyLines: boolean; delimiter: string }): { data: string[][] };
  };
  export default papa;
}
