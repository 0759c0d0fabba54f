import assert from "node:assert/strict";
import test from "node:test";
import { hidden, hide } from "../../../../portal/web/client/common/hidden.js";

test("hidden announcements are kept, the latest hundred of them", () => {
  const kept = new Map();
  globalThis.localStorage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value) };
  for (let number = 0; number < 101; number += 1) hide(`m${number}`);
  assert.equal(hidden().length, 100);
  assert.deepEqual([hidden()[0], hidden().at(-1)], ["m1", "m100"]);
  kept.set([...kept.keys()][0], '{"no": "list"}');
  assert.deepEqual(hidden(), []);
  delete globalThis.localStorage;
  assert.deepEqual(hidden(), []); // blocked
});
