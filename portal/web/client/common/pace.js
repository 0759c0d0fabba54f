// When a page polls next: slow answers, and a server that is busy, make the pauses longer.
export const USUAL = 2000; // milliseconds between two polls of a visible page
export const HIDDEN = 10_000; // of a hidden one, for its title and its notifications
const LONGEST = 30_000;
const SHARE = 5; // the pause relative to the duration of the answer, if that is longer
const RECOVERY = 4; // a pause relative to the next one, after a quick answer
const SPREAD = 0.2; // random part of a longer pause, so that pages do not poll together

export class Pace {
  /** @param {() => number} random */
  constructor(random = Math.random) {
    this.random = random;
    this.pause = USUAL;
  }

  /** Whether polls are rarer than usual since the server is slow. */
  get slow() {
    return this.pause > 2 * USUAL;
  }

  /** After an answer that took so many milliseconds. @param {number} took */
  answered(took) {
    // Shorter again step by step: the first quick answer may be an exception.
    this.pause = this.#bounded(Math.max(took * SHARE, this.pause / RECOVERY));
  }

  /** After no answer, or a refusal that names seconds to wait (Retry-After). @param {number} seconds */
  refused(seconds = 0) {
    this.pause = this.#bounded(Math.max(this.pause * 2, seconds * 1000));
  }

  /** Milliseconds until the next poll. @param {boolean} hidden */
  next(hidden) {
    const pause = Math.max(this.pause, hidden ? HIDDEN : 0);
    return pause > USUAL ? pause * (1 + SPREAD * this.random()) : pause;
  }

  /** @param {number} pause */
  #bounded(pause) {
    return Math.min(Math.max(pause, USUAL), LONGEST);
  }
}
