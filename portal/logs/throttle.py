"""Rate limit for repeated log messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

EVERY = 60.0
"""Minimum time in seconds between two lines about the same cause."""


class LogThrottle:
    """Limits lines about one cause to one per minute in each process. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, every: float = EVERY) -> None:
        self._clock = clock
        self._every = every
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}

    def __call__(self, cause: str) -> bool:
        """Whether to log this cause now; there must be few different causes."""
        with self._lock:
            now = self._clock()
            if now - self._last.get(cause, now - self._every) < self._every:
                return False
            self._last[cause] = now
            return True
