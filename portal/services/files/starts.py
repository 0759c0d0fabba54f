"""Starts file servers in threads of their own, for which a few requests wait long, others a moment.

A start takes as long as the user's shell does. A class that opens its files together would
otherwise hold all threads of the web application, while nobody else is answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from portal.core.threads import own_thread
from portal.errors import PortalError, Starting
from portal.services.owner_queue import RunForOwner

WAIT = 15.0
"""Seconds that a request waits for its start."""
WAITING = 2
"""Requests of a web process that wait so long at once."""
SHORT_WAIT = 1.0
"""Seconds that others wait: usually a start takes less."""
THREADS = 4
"""Starts at once of a web process."""
SLOW = 8.0
"""Seconds of a start after which the next ones of this user may hold only half of the threads."""
LONGEST_PAUSE = 10
"""Seconds between the tries of somebody whose start has to wait for others."""


class Starts:
    """Runs starts in the order in which people come, one at a time for each."""

    def __init__(
        self, run_for_owner: RunForOwner, wait: float = WAIT, short_wait: float = SHORT_WAIT
    ) -> None:
        self._run_for_owner = run_for_owner
        self._wait = wait
        self._short_wait = short_wait
        self._waiting = threading.BoundedSemaphore(WAITING)
        self._lock = threading.Lock()
        self._starts: dict[str, _Start] = {}
        """Those that wait or run, by user, in the order of their arrival."""
        self._slow: set[str] = set()
        self._number = 0

    def run(self, owner: str, start: Callable[[], None]) -> None:
        """Return once `start` has; raises what it raises, or Starting while it goes on."""
        own = _Start(start)
        with self._lock:
            if owner in self._starts or not self._may_start(owner):
                raise self._starting(owner)
            self._starts[owner] = own
            self._number += 1  # the queue would drop one with the name of the last one
            name = f"start file server {self._number}"
        self._run_for_owner(owner, name, lambda: self._do(owner, own))
        is_long = self._waiting.acquire(blocking=False)
        try:
            is_over = own.over.wait(self._wait if is_long else self._short_wait)
        finally:
            if is_long:
                self._waiting.release()
        if not is_over:
            with self._lock:
                raise self._starting(owner)
        if own.error is not None:
            raise own.error

    def _may_start(self, owner: str) -> bool:
        """Whether slow users leave threads to others if this one starts."""
        slow = sum(name in self._slow for name in self._starts)
        return owner not in self._slow or slow < THREADS // 2

    def _do(self, owner: str, start: _Start) -> None:
        began = time.monotonic()
        try:
            with own_thread():
                start.start()
        except BaseException as error:
            start.error = error
            if not isinstance(error, PortalError):
                raise
        finally:
            took = time.monotonic() - began
            with self._lock:
                (self._slow.add if took > SLOW else self._slow.discard)(owner)
                del self._starts[owner]
            start.over.set()

    def _starting(self, owner: str) -> Starting:
        names = list(self._starts)
        ahead = names.index(owner) if owner in names else len(names)
        others = "1 other" if ahead == 1 else f"{ahead} others"
        after = f", after those of {others}" if ahead else ""
        error = Starting(f"Your file server is being started{after}. Try again in a moment.")
        error.retry_seconds = min(1 + ahead // THREADS, LONGEST_PAUSE)
        return error


class _Start:
    """A start, and what came of it."""

    def __init__(self, start: Callable[[], None]) -> None:
        self.start = start
        self.over = threading.Event()
        self.error: BaseException | None = None
