import assert from "node:assert/strict";
import test from "node:test";
import { counted, encode, nameOf, parentOf, size, span, visible } from "../../../../portal/web/client/common/words.js";

test("sizes have one unit, and a decimal below ten", () => {
  const sizes = [0, 999, 1000, 1024, 10_240, 999 * 1024, 1_500_000_000, 5e15].map(size);
  assert.deepEqual(sizes, ["0 B", "999 B", "1.0 KB", "1.0 KB", "10 KB", "999 KB", "1.4 GB", "4547 TB"]);
});

test("counts have the plural that fits", () => {
  assert.equal(counted(1, "file"), "1 file");
  assert.equal(counted(12_000, "file"), "12,000 files");
  assert.equal(counted(0, "entry", "entries"), "0 entries");
});

test("spans are in seconds, minutes, or hours and minutes", () => {
  assert.deepEqual([0.2, 59, 60, 3599, 3600, 7260].map(span), ["1 s", "59 s", "1 min", "60 min", "1 h 0 min", "2 h 1 min"]);
  assert.equal(span(Infinity), "");
});

test("signs that change how others are shown are replaced", () => {
  assert.equal(visible("a\u202eb\nc"), "a\ufffdb\ufffdc");
  assert.equal(visible("Zürich 東京"), "Zürich 東京");
});

test("locations: the last name, what it is in, and a name as the file server writes it", () => {
  assert.equal(nameOf("home/my%20data/a%2Fb"), "a/b");
  assert.equal(nameOf("home/%FF"), "%FF"); // no UTF-8
  assert.equal(parentOf("home/a/b"), "home/a");
  assert.equal(parentOf("home"), "");
  assert.equal(encode("a b+c@d/%"), "a%20b+c@d%2F%25");
});
