// The editor of job scripts and text files: CodeMirror in the page's colours.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { c, cpp } from "@codemirror/legacy-modes/mode/clike";
import { css } from "@codemirror/legacy-modes/mode/css";
import { dockerFile } from "@codemirror/legacy-modes/mode/dockerfile";
import { fortran } from "@codemirror/legacy-modes/mode/fortran";
import { javascript, json, typescript } from "@codemirror/legacy-modes/mode/javascript";
import { julia } from "@codemirror/legacy-modes/mode/julia";
import { r } from "@codemirror/legacy-modes/mode/r";
import { stex } from "@codemirror/legacy-modes/mode/stex";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { html, xml } from "@codemirror/legacy-modes/mode/xml";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { keepLineEnds, textOf } from "./line_ends.js";

const SHELL = StreamLanguage.define(shell);
/** @type {[string, import("@codemirror/language").StreamParser<unknown>][]} */
const MODES = [
  ["c h", c], ["cpp hpp cc hh cu", cpp], ["css", css], ["dockerfile", dockerFile], ["f f90 f95 for", fortran], ["js mjs", javascript],
  ["json ipynb", json], ["ts", typescript], ["jl", julia], ["r", r], ["tex sty bib", stex], ["toml def", toml], ["html htm", html],
  ["xml svg", xml], ["yaml yml", yaml], ["sh bash zsh slurm sbatch", shell],
];
/** @type {Map<string, import("@codemirror/language").Language>} */
const BY_ENDING = new Map(MODES.flatMap(([endings, mode]) => endings.split(" ").map((ending) => [ending, StreamLanguage.define(mode)])));
BY_ENDING.set("py", pythonLanguage);

/** @type {never[]} */
const PLAIN = []; // no highlighting

// Custom properties of the page reach into the shadow root, so light and dark need no second theme.
const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--card)", fontSize: ".875rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", lineHeight: "1.55",
    maxHeight: "60vh" },
  // Not the scroller's: a click below the last line has to get into the text.
  ".cm-content, .cm-gutter": { minHeight: "16rem" },
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

// The language by a file's name, else by the first line. A job's script has no name, and is shell by default.
/** @param {string} text @param {string | undefined} name */
function languageOf(text, name) {
  const byEnding = BY_ENDING.get((name ?? "").split(".").pop()?.toLowerCase() ?? "");
  if (byEnding) return byEnding;
  if (/^#!.*python/.test(text)) return pythonLanguage;
  return name === undefined || text.startsWith("#!") ? SHELL : PLAIN;
}

/**
 * An editor in `parent`.
 * @param {HTMLElement} parent
 * @param {{ text: string, label: string, description: string, invalid: boolean, changed: (text: string) => void,
 *   name?: string, readOnly?: boolean }} options `changed` gets the text whenever it changes; `name`: of a file, whose
 *   lines keep their ends: those of other texts become \n
 */
export function edit(parent, { text, label, description, invalid, changed, name, readOnly = false }) {
  const language = new Compartment();
  let current = languageOf(text, name);
  const isFile = name !== undefined;
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
        highlightSelectionMatches(), EditorState.readOnly.of(readOnly),
        keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, indentWithTab]),
        theme, syntaxHighlighting(colours), isFile ? keepLineEnds(text) : [],
        EditorView.contentAttributes.of({
          "aria-label": label, "aria-description": description, "aria-invalid": String(invalid), spellcheck: "false",
          autocapitalize: "off", autocorrect: "off", translate: "no",
        }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          const detected = languageOf(update.state.doc.line(1).text, name);
          if (detected !== current) {
            current = detected;
            queueMicrotask(() => view.dispatch({ effects: language.reconfigure(detected) }));
          }
          changed(isFile ? textOf(update.state) : update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    focus: () => view.focus(),
    destroy: () => view.destroy(),
    replace: (/** @type {string} */ written) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: written } }),
  };
}
