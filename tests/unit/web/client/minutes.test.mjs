import assert from "node:assert/strict";
import test from "node:test";
import { minutes, stepped, written } from "../../../../portal/web/client/launch/minutes.js";

test("time limits are read as the server reads them", () => {
  const texts = ["90", " 1:30 ", "2h", "1.5 h", "1 d 2 h 3 min", "1d12hours", "2 days"];
  assert.deepEqual(texts.map(minutes), [90, 90, 120, 90, 1563, 2160, 2880]);
});

test("anything else is no number", () => {
  for (const text of ["", "x", "1:75", "1234567", "-5", "2 h x", "min"]) assert.ok(Number.isNaN(minutes(text)), text);
  assert.ok(Number.isNaN(minutes(undefined)));
});

test("they are written in full, without what is zero", () => {
  assert.deepEqual([15, 60, 90, 1440, 1501].map(written), ["15 min", "1 h", "1 h 30 min", "1 d", "1 d 1 h 1 min"]);
});

test("the buttons go to round times, in steps that grow", () => {
  assert.deepEqual([15, 50, 60, 100, 720, 721].map((number) => stepped(number, 1, Infinity)), [30, 60, 120, 120, 960, 960]);
  assert.deepEqual([15, 50, 60, 61, 720, 1000].map((number) => stepped(number, -1, Infinity)), [15, 45, 45, 60, 660, 960]);
  assert.equal(stepped(60, 1, 90), 90);
});
