// The types of what templates and htmx give to the modules.

/**
 * An element of a template, as querySelector and its like give it. The check knows neither its tag nor
 * whether it is there: a template has what its page's modules ask for, and what may be missing is asked
 * for with ?. or an if.
 */
interface Found extends HTMLElement {
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
  elements: Found[] & Record<string, Found>;
  firstElementChild: Found;
  form: Found & HTMLFormElement;
  formAction: string;
  href: string;
  indeterminate: boolean;
  label: string;
  lastElementChild: Found;
  max: string;
  name: string;
  nextElementSibling: Found;
  open: boolean;
  options: Found[];
  parentElement: Found;
  placeholder: string;
  previousElementSibling: Found;
  returnValue: string;
  selectedOptions: Found[];
  selectionStart: number;
  type: string;
  value: string;
  readonly children: HTMLCollectionOf<Found>;
  close(returnValue?: string): void;
  requestSubmit(submitter?: HTMLElement | null): void;
  select(): void;
  setSelectionRange(start: number, end: number): void;
  showModal(): void;
  submit(): void;
}

interface ParentNode {
  querySelector<K extends keyof HTMLElementTagNameMap>(selectors: K): HTMLElementTagNameMap[K] & Found;
  querySelector(selectors: string): Found;
  querySelectorAll(selectors: string): NodeListOf<Found>;
}

interface NonElementParentNode {
  getElementById(id: string): Found;
}

interface Document {
  getElementById(id: string): Found;
}

interface Element {
  closest(selectors: string): Found;
}

/** An event, whose target is an element of a template. */
type Heard<E> = Omit<E, "target" | "relatedTarget" | "submitter"> & {
  target: Found;
  relatedTarget: Found | null;
  submitter: Found | null;
};

/** What htmx says about a request; each event has some of it. */
interface HtmxDetail {
  elt: Found;
  target: Found;
  xhr: XMLHttpRequest;
  shouldSwap: boolean;
  isError: boolean;
  path: string;
  headers: Record<string, string>;
  parameters: Record<string, string>;
  requestConfig: { verb: "get" | "post"; path: string };
  issueRequest(skipConfirmation?: boolean): void;
}

type HtmxEvent = Heard<CustomEvent<HtmxDetail>>;
type Options = boolean | AddEventListenerOptions;

interface Document {
  addEventListener<K extends keyof DocumentEventMap>(type: K, listener: (event: Heard<DocumentEventMap[K]>) => unknown, options?: Options): void;
  addEventListener(type: string, listener: (event: HtmxEvent) => unknown, options?: Options): void;
}

interface HTMLElement {
  addEventListener<K extends keyof HTMLElementEventMap>(type: K, listener: (event: Heard<HTMLElementEventMap[K]>) => unknown, options?: Options): void;
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
