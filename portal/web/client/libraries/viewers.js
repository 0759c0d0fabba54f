// Libraries that show files: Markdown, cleaned HTML, and tables of text.
export { default as purify } from "dompurify";
export { marked } from "marked";
export { default as papa } from "papaparse";
