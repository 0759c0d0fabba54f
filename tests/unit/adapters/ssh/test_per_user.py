"""Turns per user: a few in parallel, no queue behind slow ones, pauses that grow and end."""

from __future__ import annotations

import threading
import time

import pytest

from portal.adapters.ssh.per_user import (
    LONGEST_PAUSE,
    PATIENT,
    PROMPT,
    SLOW,
    ThreadBudget,
    ThrottleLimits,
    UserThrottle,
)
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
    while turns._states["bob"].inside < 2:
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
    assert len(turns._states) <= 12


def refused(turns: UserThrottle, user: str, words: str) -> float:
    """Seconds until a user is refused."""
    begun = time.monotonic()
    with pytest.raises(Unavailable, match=words), turns.slot(user):
        pass
    return time.monotonic() - begun


def test_all_users_together_leave_threads_to_others() -> None:
    """Three of them, with three operations each, are more than a process has threads."""
    budget = ThreadBudget(4)
    files, shells = (UserThrottle(ThrottleLimits(3, 3, 1.0), AGAIN, budget=budget) for _ in "ab")
    with files.slot("bob"), shells.slot("bob"), shells.slot("carol"), files.slot("erin"):
        assert refused(files, "dave", "too many people") < 2 * PROMPT
        time.sleep(PROMPT)
        assert refused(files, "dave", "too many people") < PROMPT / 2, "not behind slow ones"
    with files.slot("dave"):
        pass


def test_one_user_leaves_threads_of_the_budget_to_others() -> None:
    budget = ThreadBudget(4)
    files, shells = (UserThrottle(ThrottleLimits(3, 3, 1.0), AGAIN, budget=budget) for _ in "ab")
    with files.slot("bob"), shells.slot("bob"):
        assert refused(files, "bob", "do not end in time") < 2 * PROMPT
        with files.slot("alice"), shells.slot("alice"):
            pass


def test_a_thread_of_the_budget_that_becomes_free_is_taken() -> None:
    budget, entered = ThreadBudget(1), threading.Event()
    turns = UserThrottle(BOUNDS, AGAIN, budget=budget)

    def hold() -> None:
        with turns.slot("bob"):
            entered.set()
            time.sleep(PROMPT / 4)

    holding = threading.Thread(target=hold)
    holding.start()
    entered.wait(5)
    with turns.slot("alice"):
        pass
    holding.join(5)


def test_who_was_slow_has_half_of_the_budget(clock: Clock) -> None:
    budget = ThreadBudget(2)
    turns = UserThrottle(BOUNDS, AGAIN, clock, budget)
    with turns.slot("bob"):
        clock.now += SLOW + 1
    with turns.slot("alice"):
        refused(turns, "bob", "too many people")
        with turns.slot("carol"):
            pass


def test_who_is_refused_waits_for_no_thread_of_the_budget(clock: Clock) -> None:
    turns = UserThrottle(ThrottleLimits(1, 0, 0.0), AGAIN, clock, ThreadBudget(3))
    with turns.slot("bob"):
        assert sum(refused(turns, "bob", "again in") for _ in range(20)) < PROMPT
        with turns.slot("alice"), turns.slot("carol"):
            pass
