"""Keeps one cause from filling the log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

EVERY = 60.0
"""Seconds between two lines about the same cause."""


class Seldom:
    """Says when a cause may be logged again: once a minute in each process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, every: float = EVERY) -> None:
        self._clock = clock
        self._every = every
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}

    def __call__(self, cause: str) -> bool:
        """Whether to log this cause now; `cause` is one of few words."""
        with self._lock:
            now = self._clock()
            if now - self._last.get(cause, now - self._every) < self._every:
                return False
            self._last[cause] = now
            return True
