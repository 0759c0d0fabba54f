// When a page polls next, and what it says about it: slow answers, a server that is busy and a lost
// connection make the pauses longer.
export const USUAL = 2000; // milliseconds between two polls of a visible page
export const HIDDEN = 10_000; // of a page that has just been hidden, or that shows notifications
export const LONG_HIDDEN = 120_000; // of a page that has been hidden for some time
const LONGEST = 30_000;
const SHARE = 5; // the pause relative to the duration of the answer, if that is longer
const RECOVERY = 4; // a pause relative to the next one, after a quick answer
const SPREAD = 0.2; // random part of a longer pause, so that pages do not poll together

export class Pace {
  /** @param {() => number} random */
  constructor(random = Math.random) {
    this.random = random;
    this.pause = USUAL;
    this.hidden = HIDDEN;
    this.failures = 0; // in a row
    /** @type {"slow" | "limited"} */
    this.cause = "slow"; // of a longer pause
  }

  /** What the page says. @returns {"" | "slow" | "limited" | "lost"} */
  get message() {
    if (this.failures > 1) return "lost"; // a single failure may be an exception
    return this.pause > 2 * USUAL ? this.cause : "";
  }

  /** After an answer that took so many milliseconds. @param {number} took */
  answered(took) {
    const regular = took * SHARE;
    // Shorter again step by step: the first quick answer may be an exception. Not after a lost
    // connection, whose length says nothing about the server.
    this.pause = this.#bounded(this.failures ? regular : Math.max(regular, this.pause / RECOVERY));
    if (regular > 2 * USUAL) this.cause = "slow";
    this.failures = 0;
  }

  /**
   * After a refusal: the server is busy ("slow"), or this person sends too much ("limited").
   * @param {"slow" | "limited"} cause
   * @param {number} seconds that it names (Retry-After)
   */
  refused(cause, seconds = 0) {
    this.pause = this.#bounded(Math.max(this.pause * 2, seconds * 1000));
    this.cause = cause;
    this.failures = 0;
  }

  /** After no answer, or an error. */
  failed() {
    this.pause = this.#bounded(this.pause * 2);
    this.failures += 1;
  }

  /**
   * Milliseconds until the next poll.
   * @param {boolean} hidden
   * @param {boolean} notifies whether the hidden page shows notifications
   */
  next(hidden, notifies = false) {
    const pause = Math.max(this.pause, !hidden ? 0 : notifies ? HIDDEN : this.hidden);
    this.hidden = hidden ? Math.min(this.hidden * 2, LONG_HIDDEN) : HIDDEN;
    return pause > USUAL ? pause * (1 + SPREAD * this.random()) : pause;
  }

  /** @param {number} pause */
  #bounded(pause) {
    return Math.min(Math.max(pause, USUAL), LONGEST);
  }
}
