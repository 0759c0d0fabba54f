import assert from "node:assert/strict";
import test from "node:test";
import { HIDDEN, Pace, USUAL } from "../../../../portal/web/client/common/pace.js";

const pace = () => new Pace(() => 0.5);

test("quick answers keep the usual pause", () => {
  const it = pace();
  it.answered(30);
  assert.equal(it.next(false), USUAL);
  assert.equal(it.slow, false);
  assert.equal(it.next(true), HIDDEN * 1.1);
});

test("a poll takes at most a sixth of the time", () => {
  const it = pace();
  it.answered(1000);
  assert.equal(it.next(false), 5500);
  assert.equal(it.slow, true);
});

test("the pause becomes shorter step by step", () => {
  const it = pace();
  it.answered(4000);
  it.answered(20);
  assert.equal(it.pause, 5000);
  it.answered(20);
  assert.equal(it.pause, USUAL);
  assert.equal(it.slow, false);
});

test("refusals double the pause, up to half a minute, and Retry-After counts", () => {
  const it = pace();
  it.refused();
  assert.equal(it.pause, 2 * USUAL);
  it.refused(20);
  assert.equal(it.pause, 20_000);
  for (let i = 0; i < 9; i++) it.refused();
  assert.equal(it.pause, 30_000);
});
