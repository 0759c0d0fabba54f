import assert from "node:assert/strict";
import test from "node:test";
import { assignments } from "../../../../portal/web/client/launch/assignments.js";

test("lines of a shell or of a file of variables", () => {
  const text = 'A=1\r\nexport B="two \\"words\\" \\$x"\n\n# C=3\n  D = 4\nE=a=b;\nF=\'\\$y\';\nG=';
  assert.deepEqual(assignments(text), [
    ["A", "1"], ["B", 'two "words" $x'], ["D = 4", ""], ["E", "a=b;"], ["F", "\\$y"], ["G", ""],
  ]);
});
