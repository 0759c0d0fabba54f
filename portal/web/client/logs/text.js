// The text of a log, with search. The text is split into pieces, of which only the visible ones are laid out,
// so that megabytes scroll smoothly.
const PIECE = 20_000; // characters, approximately
const LINE = 21; // pixels; an estimate for pieces that were never visible
const MANY = 5000; // matches that are highlighted at once, around the visible ones

/** A match: where it begins and ends in a piece. @typedef {{ piece: HTMLElement, start: number, end: number }} Match */

export class LogText {
  /** @param {PageElement} box */
  constructor(box) {
    this.box = box;
    this.pattern = null;
    this.matches = new Map(); // piece → [start, end] of each match in it
    this.current = -1;
  }

  get pieces() {
    return this.box.querySelectorAll("pre");
  }

  clear() {
    for (const piece of this.pieces) piece.remove();
    this.matches.clear();
    this.current = -1;
    this.mark();
  }

  /** @param {string} text */
  append(text) {
    // An incomplete line is continued in its piece.
    const last = [...this.pieces].at(-1);
    if (last && (!last.textContent.endsWith("\n") || last.textContent.length < PIECE)) {
      const [head, tail] = cut(text, Math.max(PIECE - last.textContent.length, 0));
      /** @type {Text} */ (last.firstChild).appendData(head);
      this.#measure(last);
      text = tail;
    }
    for (const piece of split(text)) this.box.append(this.#make(piece));
  }

  /** @param {string} text */
  prepend(text) {
    const before = this.box.scrollHeight - this.box.scrollTop;
    const first = this.pieces[0] ?? null;
    for (const piece of split(text)) this.box.insertBefore(this.#make(piece), first);
    this.box.scrollTop = this.box.scrollHeight - before; // what was visible stays in place
  }

  /** @param {string} text */
  #make(text) {
    const piece = document.createElement("pre");
    piece.append(text);
    this.#measure(piece);
    return piece;
  }

  /** @param {HTMLElement} piece */
  #measure(piece) {
    const lines = piece.textContent.split("\n").length;
    piece.style.containIntrinsicBlockSize = `auto ${lines * LINE}px`;
    if (this.pattern) this.#search(piece);
  }

  // Search

  /** @param {string} text */
  find(text) {
    this.pattern = text ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi") : null;
    this.matches.clear();
    this.current = -1;
    if (this.pattern) for (const piece of this.pieces) this.#search(piece);
    this.mark();
  }

  /** @param {HTMLElement} piece */
  #search(piece) {
    if (!this.pattern) return;
    /** @type {[number, number][]} */
    const ranges = [];
    for (const match of piece.textContent.matchAll(this.pattern)) {
      ranges.push([match.index, match.index + match[0].length]);
    }
    if (ranges.length) this.matches.set(piece, ranges);
    else this.matches.delete(piece);
  }

  get count() {
    let sum = 0;
    for (const ranges of this.matches.values()) sum += ranges.length;
    return sum;
  }

  // All matches in order; pieces may have been prepended since they were found.
  #all() {
    /** @type {Match[]} */
    const all = [];
    for (const piece of this.pieces) {
      for (const [start, end] of this.matches.get(piece) ?? []) all.push({ piece, start, end });
    }
    return all;
  }

  /** @param {number} by */
  step(by) {
    const all = this.#all();
    if (!all.length) return;
    if (this.current < 0) this.current = by > 0 ? this.#firstInSight(all) : all.length - 1;
    else this.current = (this.current + by + all.length) % all.length;
    this.mark(all);
    this.#bring(all[this.current]);
  }

  /** @param {Match[]} all */
  #firstInSight(all) {
    const top = this.box.getBoundingClientRect().top;
    const index = all.findIndex(({ piece }) => piece.getBoundingClientRect().bottom > top);
    return Math.max(index, 0);
  }

  /** @param {Match} match */
  #bring(match) {
    // An invisible piece is not laid out: it must be scrolled to before its match has a position.
    const position = () => range(match).getBoundingClientRect();
    match.piece.scrollIntoView({ block: "nearest" });
    requestAnimationFrame(() => {
      const box = this.box.getBoundingClientRect();
      const at = position();
      this.box.scrollTop += at.top - box.top - box.height / 2;
      this.box.scrollLeft = Math.max(0, this.box.scrollLeft + at.right - box.right + 40);
    });
  }

  mark(all = this.#all()) {
    if (!("highlights" in CSS)) return; // older browsers scroll to matches without highlighting them
    const middle = this.current < 0 ? this.#firstInSight(all) : this.current;
    const from = Math.max(0, middle - MANY / 2);
    const ranges = all.slice(from, from + MANY).map(range);
    CSS.highlights.set("log-found", new Highlight(...ranges));
    const match = all[this.current];
    const current = new Highlight(...(match ? [range(match)] : []));
    current.priority = 1;
    CSS.highlights.set("log-current", current);
  }
}

/** @param {Match} match */
function range({ piece, start, end }) {
  const result = document.createRange();
  const text = /** @type {Text} */ (piece.firstChild);
  result.setStart(text, start);
  result.setEnd(text, end);
  return result;
}

// Splits after the first line end beyond a number of characters.
/** @param {string} text @param {number} letters */
function cut(text, letters) {
  const end = text.indexOf("\n", letters);
  return end < 0 ? [text, ""] : [text.slice(0, end + 1), text.slice(end + 1)];
}

/** Splits a text into pieces of whole lines. @param {string} text */
export function* split(text) {
  while (text) {
    const [piece, tail] = cut(text, PIECE);
    yield piece;
    text = tail;
  }
}
