import assert from "node:assert/strict";
import test from "node:test";
import { megabytes, stepped, written } from "../../../../portal/web/client/launch/sizes.js";

test("sizes without a unit are gigabytes", () => {
  assert.deepEqual(["4", "600m", " 1.5 GB", "2T", "x", "", undefined].map(megabytes), [4096, 600, 1536, 2097152, 0, 0, 0]);
});

test("whole gigabytes are written as such", () => {
  assert.deepEqual([256, 1024, 1536, 4096].map(written), ["256 MB", "1 GB", "1536 MB", "4 GB"]);
});

test("the buttons go to round sizes, within the bound", () => {
  assert.deepEqual([256, 600, 1024, 4096].map((mb) => stepped(mb, 1, 0)), [512, 768, 1536, 5120]);
  assert.deepEqual([256, 600, 1024, 4096].map((mb) => stepped(mb, -1, 0)), [256, 512, 768, 3584]);
  assert.equal(stepped(4096, 1, 4500), 4500);
});
