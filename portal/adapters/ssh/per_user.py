"""Concurrency limits per user, with a backoff after slow operations.

Users control how fast their shells, homes and sessions answer. A slow user must not delay others:
few concurrent operations per user, fewer than the process has threads, no queueing behind slow
operations, and increasing pauses after operations that did not end. Several slow users together
leave a part of the threads to all others (ThreadBudget).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from portal.core.threads import in_background_thread
from portal.errors import Unavailable

PATIENT = 3.0
"""Seconds after which a running operation counts as slow: no other operation queues behind it."""
SLOW = 8.0
"""Seconds after which an operation is penalised, even if it ends."""
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
FORGIVEN = 600.0
"""Seconds without a slow operation after which penalties are forgotten."""
PROMPT = 1.0
"""Seconds that an operation waits for a thread of a budget, unless all operations are slower."""
RESERVED = 2
"""Threads of a budget that a single user cannot get."""
_USER_LIMIT = (
    "Your commands and files do not end in time, or there are too many of them at once. Try again "
    "in 2 seconds."
)
_PROCESS_LIMIT = (
    "The portal waits for the commands and files of too many people. Try again in 2 seconds."
)


@dataclass(frozen=True)
class ThrottleLimits:
    """The number of concurrent operations, of waiting ones, and how many seconds these wait."""

    at_once: int
    waiting: int
    seconds: float


class ThreadBudget:
    """Limits the threads of a process in users' operations, over all users.

    No single user gets the last threads, and users with slow operations share half of them.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._each = max(most - RESERVED, 1)
        self._clock = clock
        self._running: dict[object, tuple[str, float]] = {}
        """User and start of each operation."""
        self._changed = threading.Condition()

    @contextmanager
    def thread(self, user: str, slow: bool = False) -> Iterator[None]:
        """Hold a thread; raises Unavailable if none becomes free within PROMPT seconds."""
        if in_background_thread():
            yield
            return
        ticket = object()
        self._enter(ticket, user, slow)
        try:
            yield
        finally:
            with self._changed:
                del self._running[ticket]
                self._changed.notify_all()

    def _enter(self, ticket: object, user: str, slow: bool) -> None:
        with self._changed:
            deadline = self._clock() + PROMPT
            while refusal := self._refusal(user, slow):
                text, last_start = refusal
                now = self._clock()
                if now >= deadline or now - last_start > PROMPT:
                    raise Unavailable(text)
                self._changed.wait(deadline - now)
            self._running[ticket] = user, self._clock()

    def _refusal(self, user: str, slow: bool) -> tuple[str, float] | None:
        """The reason why an operation has to wait, and the latest start of those it waits for."""
        starts = [start for name, start in self._running.values() if name == user]
        if len(starts) >= self._each:
            return _USER_LIMIT, max(starts)
        if len(self._running) >= (self._most // 2 if slow else self._most):
            return _PROCESS_LIMIT, max((start for _, start in self._running.values()), default=0.0)
        return None


@dataclass
class _UserState:
    running: dict[object, float] = field(default_factory=dict)
    """Start time of each running operation."""
    inside: int = 0
    """The number of running and waiting operations."""
    strikes: int = 0
    until: float = 0.0
    """The end of the pause."""
    last_used: float = 0.0


class UserThrottle:
    """Grants slots by user name; shared by all threads of a process.

    `refusal` is the message for the user; its "{seconds}" is the time to wait. All running and
    waiting operations count in the budget.
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
        self._states: dict[str, _UserState] = {}
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
            self._strike(self._state(name), 2)
            self._changed.notify_all()

    def pause(self, name: str) -> float:
        """Seconds until the next operation for this name; 0.0 without a pause."""
        with self._changed:
            state = self._states.get(name)
            return max(state.until - self._clock(), 0.0) if state else 0.0

    @contextmanager
    def _thread(self, name: str) -> Iterator[None]:
        """Hold a thread of the budget; an operation that is refused anyway does not wait for it."""
        with self._changed:
            state = self._state(name)
            most = self._most(state) + self._bounds.waiting
            self._refuse(state, queue=state.inside >= most)
            state.inside += 1
            slow = state.strikes > 0
        try:
            with self._budget.thread(name, slow) if self._budget else nullcontext():
                yield
        finally:
            with self._changed:
                state.inside -= 1

    def _enter(self, name: str, ticket: object) -> None:
        with self._changed:
            state, deadline = self._state(name), self._clock() + self._bounds.seconds
            self._refuse(state, queue=False)
            while len(state.running) >= self._most(state):
                remaining = deadline - self._clock()
                if remaining <= 0:
                    raise self._busy(FIRST_PAUSE)
                self._changed.wait(min(remaining, PATIENT))
                self._refuse(state, queue=False)
            state.running[ticket] = self._clock()

    def _refuse(self, state: _UserState, queue: bool) -> None:
        now = self._clock()
        if state.until > now:
            raise self._busy(state.until - now)
        if queue:
            raise self._busy(FIRST_PAUSE)
        if len(state.running) < self._most(state):
            return
        slow = any(now - start > PATIENT for start in state.running.values())
        if slow or state.strikes:
            raise self._busy(FIRST_PAUSE)

    def _leave(self, name: str, ticket: object) -> None:
        with self._changed:
            state = self._state(name)
            took = self._clock() - state.running.pop(ticket)
            if took > SLOW:
                self._strike(state, 1)
            elif state.until <= self._clock():
                state.strikes = 0
            self._changed.notify_all()

    def _strike(self, state: _UserState, weight: int) -> None:
        state.strikes = min(state.strikes + weight, 8)
        if state.strikes > 1:
            pause = min(FIRST_PAUSE * 2 ** (state.strikes - 2), LONGEST_PAUSE)
            state.until = self._clock() + pause

    def _most(self, state: _UserState) -> int:
        return 1 if state.strikes else self._bounds.at_once

    def _state(self, name: str) -> _UserState:
        now = self._clock()
        if name not in self._states:
            self._states = {
                user: state
                for user, state in self._states.items()
                if state.inside or now - state.last_used < FORGIVEN
            }
        state = self._states.setdefault(name, _UserState())
        state.last_used = now
        return state

    def _busy(self, seconds: float) -> Unavailable:
        return Unavailable(self._refusal.format(seconds=f"{max(seconds, 1):.0f}"))
