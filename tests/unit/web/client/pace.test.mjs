import assert from "node:assert/strict";
import test from "node:test";
import { HIDDEN, LONG_HIDDEN, Pace, USUAL } from "../../../../portal/web/client/common/pace.js";

const pace = () => new Pace(() => 0.5);

test("quick answers keep the usual pause", () => {
  const it = pace();
  it.answered(30);
  assert.equal(it.next(false), USUAL);
  assert.equal(it.message, "");
  assert.equal(it.next(true), HIDDEN * 1.1);
});

test("a poll takes at most a sixth of the time", () => {
  const it = pace();
  it.answered(1000);
  assert.equal(it.next(false), 5500);
  assert.equal(it.message, "slow");
});

test("the pause becomes shorter step by step", () => {
  const it = pace();
  it.answered(4000);
  it.answered(20);
  assert.equal(it.pause, 5000);
  it.answered(20);
  assert.equal(it.pause, USUAL);
  assert.equal(it.message, "");
});

test("refusals double the pause, up to half a minute, and Retry-After counts", () => {
  const it = pace();
  it.refused("slow");
  assert.equal(it.pause, 2 * USUAL);
  it.refused("slow", 20);
  assert.equal(it.pause, 20_000);
  for (let i = 0; i < 9; i++) it.refused("slow");
  assert.equal(it.pause, 30_000);
});

test("one message at a time: a lost connection after the second failure, never called slow", () => {
  const it = pace();
  it.failed();
  assert.equal(it.message, "");
  it.failed();
  it.failed();
  assert.equal(it.pause, 8 * USUAL);
  assert.equal(it.message, "lost");
  it.answered(30);
  assert.equal(it.message, "");
  assert.equal(it.pause, USUAL);
});

test("a single failure does not hide that the portal is slow", () => {
  const it = pace();
  it.answered(2000);
  it.failed();
  assert.equal(it.message, "slow");
});

test("a person's own limit is not called slow, unless answers are", () => {
  const it = pace();
  it.refused("limited", 10);
  assert.equal(it.message, "limited");
  it.answered(1500);
  assert.equal(it.message, "slow");
  it.failed();
  it.failed();
  it.refused("limited", 10);
  assert.equal(it.message, "limited");
});

test("hidden pages poll less the longer they are hidden, unless they show notifications", () => {
  const it = pace();
  assert.deepEqual([1, 2, 4, 8, 12, 12].map((factor) => factor * HIDDEN * 1.1), [1, 2, 3, 4, 5, 6].map(() => it.next(true)));
  assert.equal(it.next(true), LONG_HIDDEN * 1.1);
  assert.equal(it.next(true, true), HIDDEN * 1.1);
  assert.equal(it.next(false), USUAL);
  assert.equal(it.next(true), HIDDEN * 1.1);
});
