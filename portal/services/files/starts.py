"""Starts file servers in background threads; a few requests wait long for theirs, others briefly.

A start takes as long as the user's shell does. A class that opens its files together would
otherwise hold all threads of the web application, while nobody else is answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from portal.core.threads import background_thread
from portal.errors import PortalError, Starting
from portal.services.owner_queue import RunForOwner
from portal.services.request_waits import RequestWaits

WAIT = 15.0
"""Seconds that a few requests wait for their starts (RequestWaits)."""
SHORT_WAIT = 1.0
"""Seconds that the others wait: usually a start takes less."""
THREADS = 4
"""Starts at once of a web process."""
LONGEST_PAUSE = 10
"""Seconds between the tries of somebody whose start has to wait for others."""


class Starts:
    """Runs starts in the order in which people come, one at a time for each."""

    def __init__(
        self,
        run_for_owner: RunForOwner,
        wait: float = WAIT,
        short_wait: float = SHORT_WAIT,
        long_waits: threading.BoundedSemaphore | None = None,
    ) -> None:
        self._run_for_owner = run_for_owner
        self._waits = RequestWaits(wait, short_wait, long_waits)
        self._lock = threading.Lock()
        self._starts: dict[str, _Start] = {}
        """Those that wait or run, by user, in the order of their arrival."""
        self._number = 0

    def run(self, owner: str, start: Callable[[], None]) -> None:
        """Return once `start` has; raises what it raises, or Starting while it goes on."""
        own = _Start(start)
        with self._lock:
            if owner in self._starts:
                raise self._starting(owner)
            self._starts[owner] = own
            self._number += 1  # the queue would drop one with the name of the last one
            name = f"start file server {self._number}"
        self._run_for_owner(owner, name, lambda: self._start(owner, own))
        if not self._waits.wait(own.ended):
            with self._lock:
                raise self._starting(owner)
        if own.error is not None:
            raise own.error

    def _start(self, owner: str, start: _Start) -> None:
        try:
            with background_thread():
                start.start()
        except BaseException as error:
            start.error = error
            if not isinstance(error, PortalError):
                raise
        finally:
            with self._lock:
                del self._starts[owner]
            start.ended.set()

    def _starting(self, owner: str) -> Starting:
        names = list(self._starts)
        ahead = names.index(owner) if owner in names else len(names)
        others = "1 other" if ahead == 1 else f"{ahead} others"
        after = f", after those of {others}" if ahead else ""
        error = Starting(f"Your file server is being started{after}. Try again in a moment.")
        error.retry_seconds = min(1 + ahead // THREADS, LONGEST_PAUSE)
        return error


class _Start:
    """A start and its outcome."""

    def __init__(self, start: Callable[[], None]) -> None:
        self.start = start
        self.ended = threading.Event()
        self.error: BaseException | None = None
