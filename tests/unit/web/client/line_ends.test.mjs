import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { keepLineEnds, textOf } from "../../../../portal/web/client/libraries/line_ends.js";

const require = createRequire(new URL("../../../../portal/web/client/package.json", import.meta.url));
const { EditorState } = await import(require.resolve("@codemirror/state").replace(/\.cjs$/, ".js"));
const { history, moveLineDown, redo, undo } = await import(require.resolve("@codemirror/commands").replace(/\.cjs$/, ".js"));

const MIXED = "one\r\ntwo\nthree\rfour\r\n\r\nlast";

/** The editor's state, which commands change. */
class Editor {
  constructor(text) {
    this.state = EditorState.create({ doc: text, extensions: [keepLineEnds(text), history()] });
  }

  get text() {
    return textOf(this.state);
  }

  /** Replace the first occurrence of a text, whose lines end with \n. */
  put(old, inserted) {
    const from = this.state.doc.toString().indexOf(old);
    assert.ok(from >= 0, old);
    this.dispatch(this.state.update({ changes: { from, to: from + old.length, insert: this.state.toText(inserted) } }));
  }

  run(command) {
    command({ state: this.state, dispatch: (transaction) => this.dispatch(transaction) });
  }

  dispatch(transaction) {
    this.state = transaction.state;
  }
}

test("a text that is not edited is the same, to the last byte", () => {
  for (const text of [MIXED, "", "\n", "\r\n", "\r", "\n\r", "a\r\r\n\n", "no end", "a\nb\n", "a\u2028b\u0085c\n", "a\0b\r\n", "\ufeffa\r\n"]) {
    assert.equal(new Editor(text).text, text, JSON.stringify(text));
  }
});

test("only the edited line changes", () => {
  const editor = new Editor(MIXED);
  editor.put("two", "TWO");
  assert.equal(editor.text, MIXED.replace("two", "TWO"));
  editor.put("last", "lastZ");
  assert.equal(editor.text, "one\r\nTWO\nthree\rfour\r\n\r\nlastZ");
});

test("a new line ends as the one that it is made of", () => {
  const editor = new Editor(MIXED);
  editor.put("one", "o\nn\ne");
  editor.put("last", "la\nst");
  assert.equal(editor.text, "o\r\nn\r\ne\r\ntwo\nthree\rfour\r\n\r\nla\r\nst");
});

test("lines that are joined or deleted leave the ends of the others alone", () => {
  const editor = new Editor(MIXED);
  editor.put("two\nthree", "twothree");
  assert.equal(editor.text, "one\r\ntwothree\rfour\r\n\r\nlast");
  editor.put("one\n", "");
  assert.equal(editor.text, "twothree\rfour\r\n\r\nlast");
});

test("lines of the same text keep their own ends", () => {
  const editor = new Editor("x\r\nx\nx\rx\n");
  editor.put("x\n", "");
  assert.equal(editor.text, "x\nx\rx\n");
});

test("several changes at once", () => {
  const editor = new Editor(MIXED);
  const at = (text) => editor.state.doc.toString().indexOf(text);
  editor.dispatch(editor.state.update({ changes: [
    { from: at("one"), insert: editor.state.toText("zero\n") }, { from: at("two"), to: at("three") }, { from: at("four"), insert: "4" },
  ] }));
  assert.equal(editor.text, "zero\r\none\r\nthree\r4four\r\n\r\nlast");
});

test("an edit that is undone leaves every line end as it was, and redone as it became", () => {
  const editor = new Editor(MIXED);
  editor.put("one\ntwo\nthree\nfour", "1");
  const edited = editor.text;
  assert.equal(edited, "1\r\n\r\nlast");
  editor.put("last", "end");
  editor.run(undo);
  editor.run(undo);
  assert.equal(editor.text, MIXED);
  editor.run(redo);
  assert.equal(editor.text, edited);
  editor.run(undo);
  editor.run(moveLineDown);
  editor.run(undo);
  assert.equal(editor.text, MIXED);
});
