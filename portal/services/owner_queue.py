"""Queues of actions per session owner, so that a slow user delays only their own actions.

Commands in a user's home and requests to a user's runner may be arbitrarily slow. A thread pool
runs them, one at a time for each owner, with growing pauses after slow failures. The threads that
poll Slurm never wait for them.
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
            pass  # the database's adapter says it, once a minute
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
        self, session: Session, what: str, action: Callable[[Session], object], queue: str = ""
    ) -> None:
        """Queue it for the owner; it is called with the session as stored at that time.

        `queue` ("/apps") selects a queue separate from the owner's usual one.
        """

        def act() -> None:
            fresh = self._store.get(session.id)
            if fresh is not None:
                session_id.set(session.id)  # until the end of the attempt, failures included
                action(fresh)

        self._run_for_owner(session.owner + queue, f"{what} {session.id}", act)


@dataclass
class _Owner:
    waiting: OrderedDict[str, Action] = field(default_factory=OrderedDict)
    running: str | None = None
    strikes: int = 0
    until: float = 0.0


class OwnerQueue:
    """Runs actions in a thread pool."""

    def __init__(self, threads: int = THREADS) -> None:
        self._owners: OrderedDict[str, _Owner] = OrderedDict()
        """Round-robin: an owner moves to the end after each action."""
        self._changed = threading.Condition()
        self._begun: dict[int, float] = {}
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
            known = self._owners.setdefault(owner, _Owner())
            if name != known.running:
                known.waiting.setdefault(name, action)
            self._changed.notify()

    def is_stuck(self, seconds: float) -> bool:
        """Whether a thread has died, or has been running one action for longer than this."""
        with self._changed:
            oldest = min(self._begun.values(), default=time.monotonic())
        return time.monotonic() - oldest > seconds or not all(t.is_alive() for t in self._threads)

    def _work(self, number: int) -> None:
        while True:
            owner, name, action = self._next(number)
            begun = time.monotonic()
            succeeded = attempt(owner, name, action)
            self._done(number, owner, succeeded, time.monotonic() - begun)

    def _next(self, number: int) -> tuple[str, str, Action]:
        with self._changed:
            while True:
                now = time.monotonic()
                for owner, known in self._owners.items():
                    if known.waiting and known.running is None and known.until <= now:
                        name, action = known.waiting.popitem(last=False)
                        known.running = name
                        self._begun[number] = now
                        self._owners.move_to_end(owner)
                        return owner, name, action
                pauses = [
                    known.until - now
                    for known in self._owners.values()
                    if known.waiting and not known.running
                ]
                self._changed.wait(max(min(pauses, default=1.0), 0.05))

    def _done(self, number: int, owner: str, succeeded: bool, took: float) -> None:
        with self._changed:
            known = self._owners[owner]
            known.running = None
            del self._begun[number]
            if succeeded:
                known.strikes, known.until = 0, 0.0
                if not known.waiting:
                    del self._owners[owner]
            else:
                known.strikes = min(known.strikes + (took > SLOW), 8)
                known.until = time.monotonic() + min(2.0**known.strikes, LONGEST_PAUSE)
            self._forget()
            self._changed.notify()

    def _forget(self) -> None:
        """Drop idle owners whose pause ended long ago."""
        limit = time.monotonic() - 10 * LONGEST_PAUSE
        idle = [
            owner
            for owner, known in self._owners.items()
            if not known.waiting and known.running is None and known.until < limit
        ]
        for owner in idle:
            del self._owners[owner]
