"""Queues of actions per session owner, so that a slow user delays only their own actions.

Commands in a user's home and requests to a user's runner may be arbitrarily slow. A thread pool
runs them, one at a time for each owner, with growing pauses after slow failures; slow owners hold
at most half of its threads. The threads that poll Slurm never wait for them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from portal.core.session.session import Session
from portal.errors import DatabaseUnavailable, PortalError
from portal.logs.context import about
from portal.logs.context import session as session_id
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

THREADS = 8
SLOW = 3.0
"""Failures that took longer than this (seconds) increase the pause."""
LONGEST_PAUSE = 30.0
LONG = 8.0
"""Seconds of an action after which its owner counts as slow, until a shorter one."""

Action = Callable[[], object]


class RunForOwner(Protocol):
    """Runs an action for an owner, unless one of this name is already queued or running."""

    def __call__(self, owner: str, name: str, action: Action) -> None:
        """Run it, now or later; failures are logged."""
        ...


def run_now(owner: str, name: str, action: Action) -> None:
    """Run it synchronously: for programs without polling threads to protect."""
    attempt(owner, name, action)


def attempt(owner: str, name: str, action: Action) -> bool:
    """Run it and log failures; returns whether it succeeded."""
    with about(owner=owner.partition("/")[0]):
        try:
            action()
        except DatabaseUnavailable:
            pass  # portal/store logs it, once a minute
        except PortalError as error:
            log.warning("%s, for %s: %s", name, owner, error)
        except Exception:
            log.exception("%s, for %s", name, owner)
        else:
            return True
    return False


class SessionQueue:
    """Runs actions for sessions in their owners' queues."""

    def __init__(self, run_for_owner: RunForOwner, store: SessionStore) -> None:
        self._run_for_owner = run_for_owner
        self._store = store

    def run(
        self, session: Session, task: str, action: Callable[[Session], object], queue: str = ""
    ) -> None:
        """Queue it for the owner; it is called with the session as stored at that time.

        `queue` ("/apps") selects a queue separate from the owner's usual one.
        """

        def act() -> None:
            fresh = self._store.get(session.id)
            if fresh is not None:
                session_id.set(session.id)  # until the end of the attempt, failures included
                action(fresh)

        self._run_for_owner(session.owner + queue, f"{task} {session.id}", act)


@dataclass
class _Queue:
    waiting: OrderedDict[str, Action] = field(default_factory=OrderedDict)
    running: str | None = None
    strikes: int = 0
    until: float = 0.0


class OwnerQueue:
    """Runs actions in a thread pool."""

    def __init__(self, threads: int = THREADS) -> None:
        self._queues: OrderedDict[str, _Queue] = OrderedDict()
        """Round-robin: an owner moves to the end after each action."""
        self._changed = threading.Condition()
        self._slow: set[str] = set()
        self._started: dict[int, float] = {}
        self._threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def __call__(self, owner: str, name: str, action: Action) -> None:
        """Queue an action for the owner."""
        with self._changed:
            queue = self._queues.setdefault(owner, _Queue())
            if name != queue.running:
                queue.waiting.setdefault(name, action)
            self._changed.notify()

    def is_stuck(self, seconds: float) -> bool:
        """Whether a thread has died, or has been running one action for longer than this."""
        with self._changed:
            oldest = min(self._started.values(), default=time.monotonic())
        return time.monotonic() - oldest > seconds or not all(t.is_alive() for t in self._threads)

    def _work(self, number: int) -> None:
        while True:
            owner, name, action = self._next(number)
            started = time.monotonic()
            succeeded = attempt(owner, name, action)
            self._finish(number, owner, succeeded, time.monotonic() - started)

    def _next(self, number: int) -> tuple[str, str, Action]:
        with self._changed:
            while True:
                now, eligible = time.monotonic(), self._eligible()
                for owner, queue in eligible:
                    if queue.until <= now:
                        name, action = queue.waiting.popitem(last=False)
                        queue.running = name
                        self._started[number] = now
                        self._queues.move_to_end(owner)
                        return owner, name, action
                pauses = [queue.until - now for _owner, queue in eligible]
                self._changed.wait(max(min(pauses, default=1.0), 0.05))

    def _eligible(self) -> list[tuple[str, _Queue]]:
        """The queues of which an action may run, after their pause."""
        running = sum(
            queue.running is not None and owner in self._slow
            for owner, queue in self._queues.items()
        )
        may_be_slow = running < max(1, len(self._threads) // 2)
        return [
            (owner, queue)
            for owner, queue in self._queues.items()
            if queue.waiting and queue.running is None and (may_be_slow or owner not in self._slow)
        ]

    def _finish(self, number: int, owner: str, succeeded: bool, took: float) -> None:
        with self._changed:
            queue = self._queues[owner]
            queue.running = None
            del self._started[number]
            (self._slow.add if took > LONG else self._slow.discard)(owner)
            if succeeded:
                queue.strikes, queue.until = 0, 0.0
                if not queue.waiting:
                    del self._queues[owner]
            else:
                queue.strikes = min(queue.strikes + (took > SLOW), 8)
                queue.until = time.monotonic() + min(2.0**queue.strikes, LONGEST_PAUSE)
            self._forget()
            self._changed.notify()

    def _forget(self) -> None:
        """Drop empty queues whose pause ended long ago."""
        limit = time.monotonic() - 10 * LONGEST_PAUSE
        idle = [
            owner
            for owner, queue in self._queues.items()
            if not queue.waiting and queue.running is None and queue.until < limit
        ]
        for owner in idle:
            del self._queues[owner]
