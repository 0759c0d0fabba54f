// The line ends of an edited text. CodeMirror has one line end for all lines; files can have several kinds, and
// only the lines that somebody edits may change.
import { invertedEffects } from "@codemirror/commands";
import { StateEffect, StateField } from "@codemirror/state";

const BREAK = /\r\n?|\n/g; // as CodeMirror splits lines
/** @type {Record<string, string>} */
const LETTERS = { "\n": "n", "\r\n": "w", "\r": "r" };
/** @type {Record<string, string>} */
const ENDS = { n: "\n", w: "\r\n", r: "\r" };

/** The line ends of a text, a letter for each. @param {string} text */
const endsOf = (text) => (text.match(BREAK) ?? []).map((end) => LETTERS[end]).join("");

/** @type {import("@codemirror/state").StateEffectType<string>} */
const restore = StateEffect.define();

/**
 * The line ends after a change; a new one is that of its line, or else of the line above.
 * @param {string} ends @param {import("@codemirror/state").Transaction} change
 */
function changed(ends, change) {
  const old = change.startState.doc;
  let result = "";
  let done = 0;
  change.changes.iterChanges((from, to, _from, _to, inserted) => {
    const [first, last] = [from, to].map((position) => old.lineAt(position).number - 1);
    result += ends.slice(done, first) + (ends[first] ?? ends[first - 1] ?? "n").repeat(inserted.lines - 1);
    done = last;
  }, true);
  return result + ends.slice(done);
}

const field = StateField.define({
  create: () => "",
  update(ends, transaction) {
    if (!transaction.docChanged) return ends;
    // Undo and redo bring back what was there, also for lines that were deleted.
    const earlier = transaction.effects.findLast((effect) => effect.is(restore))?.value;
    return earlier?.length === transaction.newDoc.lines - 1 ? earlier : changed(ends, transaction);
  },
});

/** An extension for the state of a text. @param {string} text */
export const keepLineEnds = (text) => [
  field.init(() => endsOf(text)),
  invertedEffects.of((transaction) => (transaction.docChanged ? [restore.of(transaction.startState.field(field))] : [])),
];

/** The text of a state, with its line ends. @param {import("@codemirror/state").EditorState} state */
export function textOf(state) {
  const ends = state.field(field);
  const text = state.doc.toString();
  if (!/[wr]/.test(ends)) return text;
  if (!/[nr]/.test(ends)) return text.replaceAll("\n", "\r\n");
  let number = 0;
  return text.replaceAll("\n", () => ENDS[ends[number++]]);
}
