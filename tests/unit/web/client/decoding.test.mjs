import assert from "node:assert/strict";
import test from "node:test";
import { decode, problemOf } from "../../../../portal/web/client/file/decoding.js";

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);

test("what is written is what was read, with its mark and without", async () => {
  for (const text of ["", "a\r\nb\nc\r", "\ufeffa\n", "\ufeff\ufeffa", "a\ufeffb", "日本\0語\n", "no end"]) {
    const content = decode(bytes(text), true);
    assert.equal(content.plain, true);
    const written = await new Blob([content.mark, content.text]).arrayBuffer();
    assert.deepEqual(new Uint8Array(written), bytes(text), JSON.stringify(text));
  }
});

test("bytes that are not UTF-8 are shown, and not edited", () => {
  for (const part of [[0xe4], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0x61, 0xc3]]) {
    const content = decode(new Uint8Array(part), true);
    assert.equal(content.plain, false, String(part));
    assert.equal(content.text.length, part.length); // one letter for each byte
    assert.match(problemOf({ ...content, complete: true, total: part.length }), /not UTF-8/);
  }
});

test("a character that is cut at the end of a part is no error", () => {
  assert.deepEqual(decode(bytes("aä").subarray(0, 2), false), { text: "a", mark: "", plain: true, binary: false });
});

test("a file with NUL bytes near its beginning, and UTF-16, count as binary", () => {
  const utf16 = new Uint8Array([0xff, 0xfe, 0x61, 0]);
  for (const each of [bytes("a\0b"), utf16]) {
    const content = decode(each, true);
    assert.equal(content.binary, true);
    assert.match(problemOf({ ...content, complete: true, total: each.length }), /not text/);
  }
});

test("a file that is too large, or was not read to its end, is not edited", () => {
  const content = decode(bytes("a"), true);
  assert.equal(problemOf({ ...content, complete: true, total: 1 }), "");
  assert.match(problemOf({ ...content, complete: false, total: 2 }), /2 MB/);
  assert.match(problemOf({ ...content, complete: true, total: 2 * 1024 * 1024 + 1 }), /2 MB/);
});
