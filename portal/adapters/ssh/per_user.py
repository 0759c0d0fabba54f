"""Concurrency limits per user, with a backoff after slow operations.

How fast a user's shell, home or session answers is under the user's control. A slow user must not
delay others: few concurrent operations per user, fewer than the process has threads, no queueing
behind slow ones, and increasing pauses after those that did not end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@dataclass(frozen=True)
class ThrottleLimits:
    """Concurrent operations, how many more may wait, and for how many seconds."""

    at_once: int
    waiting: int
    seconds: float


@dataclass
class _Person:
    running: dict[object, float] = field(default_factory=dict)
    """Start time of each."""
    waiting: int = 0
    strikes: int = 0
    until: float = 0.0
    """The end of the pause."""
    seen: float = 0.0


class UserThrottle:
    """Grants slots by user name; shared by all threads of a process.

    `refusal` is the message for the user; "{seconds}" in it is when to try again.
    """

    def __init__(
        self, bounds: ThrottleLimits, refusal: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bounds = bounds
        self._refusal = refusal
        self._clock = clock
        self._people: dict[str, _Person] = {}
        self._changed = threading.Condition()

    @contextmanager
    def slot(self, name: str) -> Iterator[None]:
        """Hold one of the name's slots; raises Unavailable if none becomes free in time."""
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

    def _enter(self, name: str, ticket: object) -> None:
        with self._changed:
            person, deadline = self._person(name), self._clock() + self._bounds.seconds
            self._refuse(person, queue=person.waiting >= self._bounds.waiting)
            person.waiting += 1
            try:
                while len(person.running) >= self._most(person):
                    left = deadline - self._clock()
                    if left <= 0:
                        raise self._busy(FIRST_PAUSE)
                    self._changed.wait(min(left, PATIENT))
                    self._refuse(person, queue=False)
                person.running[ticket] = self._clock()
            finally:
                person.waiting -= 1

    def _refuse(self, person: _Person, queue: bool) -> None:
        now = self._clock()
        if person.until > now:
            raise self._busy(person.until - now)
        if len(person.running) < self._most(person):
            return
        slow = any(now - begun > PATIENT for begun in person.running.values())
        if queue or slow or person.strikes:
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
                if person.running or person.waiting or now - person.seen < FORGIVEN
            }
        person = self._people.setdefault(name, _Person())
        person.seen = now
        return person

    def _busy(self, seconds: float) -> Unavailable:
        return Unavailable(self._refusal.format(seconds=f"{max(seconds, 1):.0f}"))
