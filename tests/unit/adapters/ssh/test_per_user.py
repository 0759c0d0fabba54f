"""Turns per user: a few in parallel, no queue behind slow ones, pauses that grow and end."""

from __future__ import annotations

import threading
import time

import pytest

from portal.adapters.ssh.per_user import LONGEST_PAUSE, PATIENT, SLOW, ThrottleLimits, UserThrottle
from portal.errors import Unavailable

BOUNDS = ThrottleLimits(at_once=2, waiting=1, seconds=0.2)
AGAIN = "again in {seconds}"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Now."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def turns(clock: Clock) -> UserThrottle:
    return UserThrottle(BOUNDS, AGAIN, clock)


def test_one_call_may_wait_and_gets_the_next_turn() -> None:
    turns, order = UserThrottle(ThrottleLimits(1, 1, 5.0), AGAIN), []
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with turns.slot("bob"):
            entered.set()
            leave.wait(5)
            order.append("first")

    def second() -> None:
        with turns.slot("bob"):
            order.append("second")

    one, two = threading.Thread(target=first), threading.Thread(target=second)
    one.start()
    entered.wait(5)
    two.start()
    while not turns._people["bob"].waiting:
        time.sleep(0.001)
    with pytest.raises(Unavailable), turns.slot("bob"):
        pass
    leave.set()
    one.join(5)
    two.join(5)
    assert order == ["first", "second"]


def test_nobody_queues_behind_slow_calls(turns: UserThrottle, clock: Clock) -> None:
    with turns.slot("bob"), turns.slot("bob"):
        clock.now += PATIENT + 1
        begun = time.monotonic()
        with pytest.raises(Unavailable), turns.slot("bob"):
            pass
        assert time.monotonic() - begun < BOUNDS.seconds
        with turns.slot("alice"):
            pass


def test_pauses_grow_and_end(turns: UserThrottle, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        turns.penalize("bob")
        pauses.append(turns.pause("bob"))
        with pytest.raises(Unavailable, match="again in"), turns.slot("bob"):
            pass
        clock.now += pauses[-1] + 1
    assert pauses == sorted(pauses)
    assert pauses[0] == 2
    assert pauses[-1] == LONGEST_PAUSE
    assert turns.pause("alice") == 0
    # After it one at a time, until one has ended within its time.
    with turns.slot("bob"), pytest.raises(Unavailable), turns.slot("bob"):
        pass
    with turns.slot("bob"), turns.slot("bob"):
        pass


def test_late_ends_count_too(turns: UserThrottle, clock: Clock) -> None:
    for expected in (0, 2, 4):
        with turns.slot("bob"):
            clock.now += SLOW + 1
        assert turns.pause("bob") == expected
        clock.now += expected


def test_idle_users_are_forgotten(turns: UserThrottle, clock: Clock) -> None:
    for number in range(100):
        with turns.slot(f"user{number}"):
            pass
        clock.now += 60
    assert len(turns._people) <= 12
