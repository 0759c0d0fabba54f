import assert from "node:assert/strict";
import test from "node:test";
import { readDraft, removeDrafts } from "../../../../portal/web/client/common/drafts.js";

const NAME = "slipway-draft alice /jobs/new";
const DAY = 86_400_000;

/** A storage: what it has are its own enumerable properties, as in browsers. */
function storage(content) {
  return Object.create(
    { getItem(name) { return Object.hasOwn(this, name) ? this[name] : null; }, removeItem(name) { delete this[name]; } },
    Object.getOwnPropertyDescriptors(content),
  );
}

test("the first storage that has a draft counts", () => {
  const [tab, browser] = [storage({}), storage({ [NAME]: JSON.stringify({ fields: [["name", "x"]] }) })];
  assert.deepEqual(readDraft([tab, browser], "alice", NAME), { fields: [["name", "x"]] });
  assert.equal(readDraft([tab], "alice", NAME), null);
});

test("a draft lasts for a week, and what is none is passed over", () => {
  const old = storage({ [NAME]: JSON.stringify({ fields: [], at: Date.now() - 7 * DAY }) });
  const young = storage({ [NAME]: JSON.stringify({ fields: [], at: Date.now() - 6 * DAY }) });
  assert.equal(readDraft([old], "alice", NAME), null);
  assert.ok(readDraft([storage({ [NAME]: "{" }), young], "alice", NAME));
});

test("drafts of other users are removed, and nothing else", () => {
  const place = storage({ [NAME]: "null", "slipway-draft alice2 /jobs/new": "{}", "slipway-theme": "dark" });
  readDraft([place], "alice", NAME);
  assert.deepEqual(Object.keys(place).sort(), [NAME, "slipway-theme"]);
});

test("a log-out removes all drafts", () => {
  globalThis.localStorage = storage({ [NAME]: "{}", "slipway-theme": "dark" });
  removeDrafts();
  assert.deepEqual(Object.keys(globalThis.localStorage), ["slipway-theme"]);
  delete globalThis.localStorage;
  removeDrafts(); // blocked: it does not fail
});
