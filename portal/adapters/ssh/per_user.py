"""Concurrency limits per user, with a backoff after slow operations.

How fast a user's shell, home or session answers is under the user's control. A slow user must not
delay others: few concurrent operations per user, fewer than the process has threads, no queueing
behind slow ones, and increasing pauses after those that did not end. Several slow users together
leave a part of the threads to all others (ThreadBudget).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from portal.errors import Unavailable

PATIENT = 3.0
"""Seconds after which a running operation counts as slow: nothing queues behind it."""
SLOW = 8.0
"""Seconds after which it is penalised, even if it ends."""
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
FORGIVEN = 600.0
"""Seconds without a slow operation after which penalties are forgotten."""
PROMPT = 1.0
"""Seconds that an operation waits for a thread of a budget, unless all of them are slower."""
RESERVED = 2
"""Threads of a budget that one user leaves to others."""
_OWN = (
    "Your commands and files do not end in time, or there are too many of them at once. Try again "
    "in 2 seconds."
)
_FULL = "The portal waits for the commands and files of too many people. Try again in 2 seconds."


@dataclass(frozen=True)
class ThrottleLimits:
    """Concurrent operations, how many more may wait, and for how many seconds."""

    at_once: int
    waiting: int
    seconds: float


class ThreadBudget:
    """Limits the threads of a process that are in users' operations, whoever the users are.

    Nobody gets the last ones, and all of those who were slow before get half of them together.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._each = max(most - RESERVED, 1)
        self._clock = clock
        self._begun: dict[object, tuple[str, float]] = {}
        """User and start of each operation."""
        self._changed = threading.Condition()

    @contextmanager
    def thread(self, user: str, slow: bool = False) -> Iterator[None]:
        """Hold one of the threads; raises Unavailable if none becomes free in a moment."""
        ticket = object()
        self._enter(ticket, user, slow)
        try:
            yield
        finally:
            with self._changed:
                del self._begun[ticket]
                self._changed.notify_all()

    def _enter(self, ticket: object, user: str, slow: bool) -> None:
        with self._changed:
            deadline = self._clock() + PROMPT
            while refusal := self._refusal(user, slow):
                text, last = refusal
                now = self._clock()
                if now >= deadline or now - last > PROMPT:
                    raise Unavailable(text)
                self._changed.wait(deadline - now)
            self._begun[ticket] = user, self._clock()

    def _refusal(self, user: str, slow: bool) -> tuple[str, float] | None:
        """Why another operation has to wait, and the start of the last of those it waits for."""
        own = [begun for name, begun in self._begun.values() if name == user]
        if len(own) >= self._each:
            return _OWN, max(own)
        if len(self._begun) >= (self._most // 2 if slow else self._most):
            return _FULL, max((begun for _, begun in self._begun.values()), default=0.0)
        return None


@dataclass
class _Person:
    running: dict[object, float] = field(default_factory=dict)
    """Start time of each."""
    inside: int = 0
    """How many run or wait."""
    strikes: int = 0
    until: float = 0.0
    """The end of the pause."""
    seen: float = 0.0


class UserThrottle:
    """Grants slots by user name; shared by all threads of a process.

    `refusal` is the message for the user; "{seconds}" in it is when to try again. All who wait or
    run count in the budget.
    """

    def __init__(
        self,
        bounds: ThrottleLimits,
        refusal: str,
        clock: Callable[[], float] = time.monotonic,
        budget: ThreadBudget | None = None,
    ) -> None:
        self._bounds = bounds
        self._budget = budget
        self._refusal = refusal
        self._clock = clock
        self._people: dict[str, _Person] = {}
        self._changed = threading.Condition()

    @contextmanager
    def slot(self, name: str) -> Iterator[None]:
        """Hold one of the name's slots; raises Unavailable if none becomes free in time."""
        with self._thread(name):
            ticket = object()
            self._enter(name, ticket)
            try:
                yield
            finally:
                self._leave(name, ticket)

    def penalize(self, name: str) -> None:
        """Record an operation that did not end: a pause, then one at a time."""
        with self._changed:
            self._strike(self._person(name), 2)
            self._changed.notify_all()

    def pause(self, name: str) -> float:
        """Seconds until the next operation for this name; 0.0 without a pause."""
        with self._changed:
            known = self._people.get(name)
            return max(known.until - self._clock(), 0.0) if known else 0.0

    @contextmanager
    def _thread(self, name: str) -> Iterator[None]:
        """Count in the budget; whoever is refused anyhow does not wait for it."""
        with self._changed:
            person = self._person(name)
            most = self._most(person) + self._bounds.waiting
            self._refuse(person, queue=person.inside >= most)
            person.inside += 1
            slow = person.strikes > 0
        try:
            with self._budget.thread(name, slow) if self._budget else nullcontext():
                yield
        finally:
            with self._changed:
                person.inside -= 1

    def _enter(self, name: str, ticket: object) -> None:
        with self._changed:
            person, deadline = self._person(name), self._clock() + self._bounds.seconds
            self._refuse(person, queue=False)
            while len(person.running) >= self._most(person):
                left = deadline - self._clock()
                if left <= 0:
                    raise self._busy(FIRST_PAUSE)
                self._changed.wait(min(left, PATIENT))
                self._refuse(person, queue=False)
            person.running[ticket] = self._clock()

    def _refuse(self, person: _Person, queue: bool) -> None:
        now = self._clock()
        if person.until > now:
            raise self._busy(person.until - now)
        if queue:
            raise self._busy(FIRST_PAUSE)
        if len(person.running) < self._most(person):
            return
        slow = any(now - begun > PATIENT for begun in person.running.values())
        if slow or person.strikes:
            raise self._busy(FIRST_PAUSE)

    def _leave(self, name: str, ticket: object) -> None:
        with self._changed:
            person = self._person(name)
            took = self._clock() - person.running.pop(ticket)
            if took > SLOW:
                self._strike(person, 1)
            elif person.until <= self._clock():
                person.strikes = 0
            self._changed.notify_all()

    def _strike(self, person: _Person, weight: int) -> None:
        person.strikes = min(person.strikes + weight, 8)
        if person.strikes > 1:
            pause = min(FIRST_PAUSE * 2 ** (person.strikes - 2), LONGEST_PAUSE)
            person.until = self._clock() + pause

    def _most(self, person: _Person) -> int:
        return 1 if person.strikes else self._bounds.at_once

    def _person(self, name: str) -> _Person:
        now = self._clock()
        if name not in self._people:
            self._people = {
                known: person
                for known, person in self._people.items()
                if person.inside or now - person.seen < FORGIVEN
            }
        person = self._people.setdefault(name, _Person())
        person.seen = now
        return person

    def _busy(self, seconds: float) -> Unavailable:
        return Unavailable(self._refusal.format(seconds=f"{max(seconds, 1):.0f}"))
