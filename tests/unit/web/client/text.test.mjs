import assert from "node:assert/strict";
import test from "node:test";
import { split } from "../../../../portal/web/client/logs/text.js";

test("a log is split after lines, and nothing is lost", () => {
  const line = `${"x".repeat(99)}\n`;
  const text = `${line.repeat(450)}the last one`;
  const pieces = [...split(text)];
  assert.equal(pieces.join(""), text);
  assert.deepEqual(pieces.map((piece) => piece.length), [20_100, 20_100, 4812]);
  assert.ok(pieces.slice(0, -1).every((piece) => piece.endsWith("\n")));
});

test("a line that is longer than a piece stays whole", () => {
  assert.deepEqual([...split("y".repeat(50_000))].map((piece) => piece.length), [50_000]);
  assert.deepEqual([...split("")], []);
});
