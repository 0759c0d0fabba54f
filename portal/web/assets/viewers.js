// Libraries that show files: Markdown, cleaned HTML, and tables of text.
// build.sh bundles this file with them to ../static/vendor/viewers.min.js.
export { default as purify } from "dompurify";
export { marked } from "marked";
export { default as papa } from "papaparse";
