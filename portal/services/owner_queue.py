"""Work for the owners of sessions, each owner's apart: who is slow makes only himself wait.

Commands in a user's home, orders to a user's runner: how long they take is the user's doing. They
are done by a few threads, one at a time for each owner, with growing pauses after what failed
slowly. The lanes that look at Slurm for everybody never wait for any of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from portal.core.interfaces.sessions import SessionStore
from portal.core.session.session import Session
from portal.errors import PortalError

log = logging.getLogger(__name__)

THREADS = 8
SLOW = 3.0
"""Seconds after which a failure makes the pause longer."""
LONGEST_PAUSE = 30.0

Action = Callable[[], object]


class RunForOwner(Protocol):
    """Has something done for an owner; what is waiting or under way already is not done twice."""

    def __call__(self, owner: str, name: str, action: Action) -> None:
        """Do it, now or later; failures are written to the log."""
        ...


def run_now(owner: str, name: str, action: Action) -> None:
    """Do it here and now: for programs that have no lanes to protect."""
    attempt(owner, name, action)


def attempt(owner: str, name: str, action: Action) -> bool:
    """Do it; whether it went well."""
    try:
        action()
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
        """Run it when the owner's turn comes, with the session as it is stored then.

        `queue` ("/apps") names a queue of its own beside the owner's usual one.
        """

        def act() -> None:
            fresh = self._store.get(session.id)
            if fresh is not None:
                action(fresh)

        self._run_for_owner(session.owner + queue, f"{what} {session.id}", act)


@dataclass
class _Owner:
    waiting: OrderedDict[str, Action] = field(default_factory=OrderedDict)
    doing: str | None = None
    strikes: int = 0
    until: float = 0.0


class OwnerQueue:
    """Later, by a pool of threads."""

    def __init__(self, threads: int = THREADS) -> None:
        self._owners: OrderedDict[str, _Owner] = OrderedDict()
        """Whoever had a turn goes to the end."""
        self._changed = threading.Condition()
        self._begun: dict[int, float] = {}
        self._threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def __call__(self, owner: str, name: str, action: Action) -> None:
        """Have it done when the owner's turn comes."""
        with self._changed:
            known = self._owners.setdefault(owner, _Owner())
            if name != known.doing:
                known.waiting.setdefault(name, action)
            self._changed.notify()

    def is_stuck(self, seconds: float) -> bool:
        """Whether a thread has ended, or has been at one thing for so long that it never ends."""
        with self._changed:
            oldest = min(self._begun.values(), default=time.monotonic())
        return time.monotonic() - oldest > seconds or not all(t.is_alive() for t in self._threads)

    def _work(self, number: int) -> None:
        while True:
            owner, name, action = self._next(number)
            begun = time.monotonic()
            well = attempt(owner, name, action)
            self._done(number, owner, well, time.monotonic() - begun)

    def _next(self, number: int) -> tuple[str, str, Action]:
        with self._changed:
            while True:
                now = time.monotonic()
                for owner, known in self._owners.items():
                    if known.waiting and known.doing is None and known.until <= now:
                        name, action = known.waiting.popitem(last=False)
                        known.doing = name
                        self._begun[number] = now
                        self._owners.move_to_end(owner)
                        return owner, name, action
                ends = [k.until - now for k in self._owners.values() if k.waiting and not k.doing]
                self._changed.wait(max(min(ends, default=1.0), 0.05))

    def _done(self, number: int, owner: str, well: bool, took: float) -> None:
        with self._changed:
            known = self._owners[owner]
            known.doing = None
            del self._begun[number]
            if well:
                known.strikes, known.until = 0, 0.0
                if not known.waiting:
                    del self._owners[owner]
            else:
                known.strikes = min(known.strikes + (took > SLOW), 8)
                known.until = time.monotonic() + min(2.0**known.strikes, LONGEST_PAUSE)
            self._forget()
            self._changed.notify()

    def _forget(self) -> None:
        """Owners with nothing to do whose pause was over long ago."""
        limit = time.monotonic() - 10 * LONGEST_PAUSE
        idle = [
            owner
            for owner, known in self._owners.items()
            if not known.waiting and known.doing is None and known.until < limit
        ]
        for owner in idle:
            del self._owners[owner]
