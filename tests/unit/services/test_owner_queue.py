"""Work for owners: parallel for different ones, never twice, and pauses for slow ones."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from portal.errors import Unavailable
from portal.services import owner_queue
from portal.services.owner_queue import OwnerQueue, run_now
from tests.support.cluster import wait_for


@pytest.fixture
def work() -> OwnerQueue:
    found = OwnerQueue(3)
    found.start()
    return found


def test_a_slow_owner_delays_only_himself(work: OwnerQueue) -> None:
    hold, done = threading.Event(), []
    for number in range(10):
        work("bob", f"slow {number}", lambda: hold.wait(10))
    for number in range(20):
        work("alice", f"quick {number}", lambda: done.append(threading.get_ident()))
    wait_for("alice's work", lambda: len(done) == 20, 3, 0.01)
    hold.set()


def test_nothing_is_done_twice_at_once(work: OwnerQueue) -> None:
    hold, begun = threading.Event(), []

    def act() -> None:
        begun.append(1)
        hold.wait(10)

    for _ in range(50):
        work("bob", "clean x", act)
    wait_for("the beginning", lambda: bool(begun), 3, 0.01)
    for _ in range(50):
        work("bob", "clean x", act)
    hold.set()
    time.sleep(0.2)
    assert len(begun) == 1
    work("bob", "clean x", act)
    wait_for("once more", lambda: len(begun) == 2, 3, 0.01)


def test_failures_cause_a_pause_that_success_ends(
    work: OwnerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_queue, "SLOW", 0.0)
    times: list[float] = []
    fails = [True, True, False]

    def act() -> None:
        times.append(time.monotonic())
        if fails.pop(0):
            raise Unavailable("it dripped")

    for _ in range(3):
        work("bob", f"try {len(fails)}", act)
        before = len(times)
        wait_for("a try", partial(_more_than, times, before), 10, 0.01)
    first, second = times[1] - times[0], times[2] - times[1]
    assert 1.9 < first < 3.5
    assert 3.9 < second < 6
    work("bob", "after", lambda: times.append(time.monotonic()))
    wait_for("no pause", lambda: len(times) == 4, 1, 0.01)


def test_slow_owners_hold_half_of_the_threads(
    work: OwnerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_queue, "LONG", 0.0)
    slow, hold = ("bob", "carol", "dave"), threading.Event()
    running, done = set[str](), list[str]()
    for owner in slow:
        work(owner, "first", partial(done.append, owner))
    wait_for("the first ones", lambda: len(done) == len(slow), 3, 0.01)
    monkeypatch.setattr(owner_queue, "LONG", 60.0)

    def act(owner: str) -> None:
        running.add(owner)
        hold.wait(10)

    for owner in slow:
        work(owner, "second", partial(act, owner))
    wait_for("a slow one", lambda: len(running) == 1, 3, 0.01)
    for number in range(20):
        work("alice", f"quick {number}", partial(done.append, "alice"))
    wait_for("alice's work", lambda: done.count("alice") == 20, 3, 0.01)
    assert len(running) == 1, "half of three threads, rounded down"
    hold.set()
    wait_for("the others", lambda: running == set(slow), 3, 0.01)


def _more_than(times: list[float], number: int) -> bool:
    return len(times) > number


def test_a_hanging_task_is_detected(work: OwnerQueue) -> None:
    hold = threading.Event()
    work("bob", "hang", lambda: hold.wait(10))
    time.sleep(0.2)
    assert not work.is_stuck(60)
    assert work.is_stuck(0.1)
    hold.set()
    wait_for("its end", lambda: not work.is_stuck(0.1), 3, 0.01)


def test_without_threads_it_is_done_at_once(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    run_now("bob", "act", lambda: done.append(1))

    def fail() -> None:
        raise Unavailable("no")

    run_now("bob", "act", fail)
    run_now("bob", "act", lambda: 1 / 0)
    assert done == [1]
    assert len(caplog.records) == 2
