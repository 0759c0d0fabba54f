// The editor of job scripts: CodeMirror with highlighting for shell and Python, in the page's colours.
// build.sh bundles this file with its libraries to ../static/vendor/editor.min.js.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const SHELL = StreamLanguage.define(shell);

// Custom properties of the page reach into the shadow root, so light and dark need no second theme.
const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--card)", fontSize: ".875rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", lineHeight: "1.55",
    minHeight: "16rem", maxHeight: "60vh" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { color: "var(--soft)", backgroundColor: "var(--well)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--mark) 6%, transparent)" },
  ".cm-activeLineGutter": { color: "var(--ink)", backgroundColor: "var(--quiet-soft)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--mark) 26%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--mark-soft)", outline: "1px solid var(--mark)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.comment, tags.meta], color: "var(--soft)" },
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.operatorKeyword, tags.moduleKeyword],
    color: "var(--mark)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--live)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--wait)" },
  { tag: [tags.standard(tags.variableName), tags.standard(tags.name), tags.attributeName,
    tags.function(tags.definition(tags.variableName))], color: "var(--start)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const languageOf = (text) => (/^#!.*python/.test(text) ? pythonLanguage : SHELL);

// An editor in `parent`; `changed` gets its text whenever that changes.
export function edit(parent, { text, label, description, invalid, changed }) {
  const language = new Compartment();
  let current = languageOf(text);
  // In a shadow root, since there CodeMirror adopts its style sheets; elsewhere it writes <style>
  // elements, which the page's policy forbids.
  const root = parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), drawSelection(), history(), bracketMatching(),
        indentUnit.of("    "), EditorState.tabSize.of(8), language.of(current),
        // Tab indents; after Escape the next Tab leaves the editor (CodeMirror's own rule).
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        theme, syntaxHighlighting(colours),
        EditorView.contentAttributes.of({
          "aria-label": label, "aria-description": description, "aria-invalid": String(invalid), spellcheck: "false",
          autocapitalize: "off", autocorrect: "off", translate: "no",
        }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          const wanted = languageOf(update.state.doc.line(1).text);
          if (wanted !== current) {
            current = wanted;
            queueMicrotask(() => view.dispatch({ effects: language.reconfigure(wanted) }));
          }
          changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  return { focus: () => view.focus(), destroy: () => view.destroy() };
}
