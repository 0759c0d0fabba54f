import assert from "node:assert/strict";
import test from "node:test";
import { ageWords, clockSpan, logLines } from "../../../../portal/web/client/common/spans.js";

const [MINUTE, HOUR, DAY] = [60e3, 3600e3, 86400e3];

test("a clock's span has days only if there are some", () => {
  assert.deepEqual([-5, 999, 65e3, HOUR, DAY + HOUR + 1e3].map(clockSpan), ["0:00:00", "0:00:00", "0:01:05", "1:00:00", "1 d 01:00:01"]);
});

test("an age has one unit", () => {
  assert.deepEqual([-HOUR, 59e3, MINUTE, 59 * MINUTE, HOUR, 47 * HOUR, 2 * DAY].map(ageWords),
    ["less than 1 min", "less than 1 min", "1 min", "59 min", "1 h", "47 h", "2 days"]);
});

test("times at the beginnings of a log's lines are shown in the reader's zone, and no others", () => {
  const local = new Date("2026-01-31T14:05:09Z").toLocaleString("sv-SE");
  const text = "2026-01-31T14:05:09Z one 2026-01-31T14:05:09Z x\n2026-99-31T14:05:09Z two\nplain";
  assert.equal(logLines(text), `${local} one 2026-01-31T14:05:09Z x\n2026-99-31T14:05:09Z two\nplain`);
});
