"""`slipway reload-web`: new gunicorn workers, for new settings or another release.

At SIGHUP gunicorn ends its old workers before the new ones have loaded the application, so requests
are unanswered for seconds, or for a minute on a busy machine. So workers are replaced one by one:
SIGTTIN adds a worker, and once it is ready, SIGTTOU removes the oldest one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial

from portal.adapters.web_processes import Gunicorn
from portal.errors import Unavailable

READY_SECONDS = 120.0
"""Time limit for a new worker to load the application."""
ENDED_SECONDS = 60.0
"""Time limit for an old worker's last requests; gunicorn itself allows 30 s."""
_PAUSE = 0.05


class WebReload:
    """One replacement of all workers; raises Unavailable if it does not succeed."""

    def __init__(self, gunicorn: Gunicorn, patience: float = 1.0) -> None:
        self._gunicorn, self._patience = gunicorn, patience
        self._first = gunicorn.first()
        self._old = gunicorn.workers(self._first)
        self.target_count = gunicorn.configured_workers(self._first) or max(len(self._old), 1)
        """Number of workers after the reload."""

    def run(self) -> None:
        """Replace the workers."""
        for count in range(1, self.target_count + 1):
            self._send(signal.SIGTTIN)
            self._wait("new worker is ready", partial(self._are_ready, count), READY_SECONDS)
            self._end_oldest()
        # Workers left over from an interrupted reload.
        while self._count() > self.target_count:
            self._end_oldest()

    def _end_oldest(self) -> None:
        # Equal pending signals are merged, so wait for the effect of each before the next.
        before = self._count()
        self._send(signal.SIGTTOU)
        self._wait("old worker has ended", lambda: self._count() < before, ENDED_SECONDS)

    def _are_ready(self, count: int) -> bool:
        """Whether at least `count` new workers are ready."""
        new = self._gunicorn.workers(self._first) - self._old
        return len(self._gunicorn.ready(new)) >= count

    def _count(self) -> int:
        return len(self._gunicorn.workers(self._first))

    def _send(self, number: int) -> None:
        try:
            os.kill(self._first, number)
        except OSError as error:
            raise Unavailable(f"gunicorn, process {self._first}: {error.strerror}.") from error

    def _wait(self, event: str, condition: Callable[[], bool], seconds: float) -> None:
        seconds *= self._patience
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                text = f"gunicorn, process {self._first}: no {event} within {seconds:g} s."
                raise Unavailable(text)
            time.sleep(_PAUSE)
