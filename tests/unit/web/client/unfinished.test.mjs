import assert from "node:assert/strict";
import test from "node:test";
import { encode } from "../../../../portal/web/client/common/words.js";
import { left, linesOf } from "../../../../portal/web/client/uploads/unfinished.js";

const upload = (id, offset = 40, length = 100) => ({ id, path: `home/${id}`, name: id, offset, length, expires: 0 });
const item = (id, size = 100) => ({ target: `home/${id}`, size });

test("an upload that goes on, or is done, is no longer one of those that are left", () => {
  const uploads = ["a", "b"].map((id) => upload(id));
  assert.deepEqual(left(uploads, []), uploads);
  assert.deepEqual(left(uploads, [item("a")]), [uploads[1]]);
  assert.deepEqual(left(uploads, [item("a", 99)]), uploads); // another file of that name
});

test("a few have a line each, many have one together", () => {
  const few = ["a", "b", "c"].map((id) => upload(id));
  assert.deepEqual(linesOf(few), { single: few, sum: null });
  const many = [...few, upload("d", 0, 1000)];
  assert.deepEqual(linesOf(many), { single: [], sum: { count: 4, offset: 120, length: 1300 } });
  assert.deepEqual(linesOf([]), { single: [], sum: null });
});

test("a file's target is written as the file server writes it", () => {
  assert.equal(encode("a@b=c+d (2)'!~*.txt"), "a@b=c+d%20(2)'!~*.txt");
  assert.equal(encode("für/$,;:&?#%"), "f%C3%BCr%2F$,;:%26%3F%23%25");
});
