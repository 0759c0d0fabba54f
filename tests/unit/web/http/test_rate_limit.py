"""Rate limits by caller."""

from __future__ import annotations

import json

import pytest
from flask import Flask
from werkzeug.exceptions import TooManyRequests

from portal.web import runner
from portal.web.http import rate_limit
from portal.web.http.json import StrictJson
from portal.web.http.rate_limit import Rate, RateLimiter

RATE = Rate(per_second=1.0, at_once=3)


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.now


def test_a_burst_then_one_per_second() -> None:
    clock = Clock()
    subject = RateLimiter(clock)
    for _ in range(3):
        subject.take("a", RATE)
    with pytest.raises(TooManyRequests) as caught:
        subject.take("a", RATE)
    assert caught.value.retry_after == 1
    subject.take("b", RATE)
    clock.now += 1
    subject.take("a", RATE)
    with pytest.raises(TooManyRequests):
        subject.take("a", RATE)
    clock.now += 100
    for _ in range(3):
        subject.take("a", RATE)


def test_idle_callers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MOST_KEYS", 10)
    subject = RateLimiter(Clock())
    for number in range(100):
        subject.take(str(number), RATE)
    assert len(subject._buckets) == 10


def test_json_is_json() -> None:
    """L4: a check where JSON is generated, against values from unknown sources."""
    app = Flask("x")
    subject = StrictJson(app)
    found = subject.dumps({"a": [float("inf"), (float("nan"), 1.5)], "b": {"c": float("-inf")}})
    assert json.loads(found) == {"a": [None, [None, 1.5]], "b": {"c": None}}


def test_normal_runners_are_within_the_limit() -> None:
    assert runner.NEWS.at_once >= 2
    assert runner.APP_NEWS.at_once >= 20
