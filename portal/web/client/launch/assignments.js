/**
 * The names and values of lines such as NAME=value or export NAME="value". Other lines become names without
 * values, which are marked as errors; empty lines and comments are omitted.
 * @param {string} text
 * @returns {[name: string, value: string][]}
 */
export const assignments = (text) => text.split(/\r?\n/).map((line) => line.trim())
  .filter((line) => line && !line.startsWith("#")).map(assignment);

/** @param {string} line @returns {[string, string]} */
function assignment(line) {
  const [, name, value] = /^(?:export\s+)?([^\s=]+)=(.*)$/.exec(line) ?? ["", line, ""];
  const quoted = /^(["'])([\s\S]*)\1;?$/.exec(value.trim());
  if (!quoted) return [name, value.trim()];
  return [name, quoted[1] === '"' ? quoted[2].replace(/\\(["\\$`])/g, "$1") : quoted[2]];
}
