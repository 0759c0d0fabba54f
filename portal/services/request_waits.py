"""How long requests wait for work that background threads do for them."""

from __future__ import annotations

import threading

LONG_WAITS = 2
"""Requests of a web process that wait long at once."""


class RequestWaits:
    """Has a few requests wait long and the others briefly, so that these never hold all threads."""

    def __init__(self, long: float, short: float) -> None:
        """Times in seconds."""
        self._long = long
        self._short = short
        self._slots = threading.BoundedSemaphore(LONG_WAITS)

    def wait(self, ended: threading.Event) -> bool:
        """Wait for the end of the work; returns whether it has ended."""
        is_long = self._slots.acquire(blocking=False)
        try:
            return ended.wait(self._long if is_long else self._short)
        finally:
            if is_long:
                self._slots.release()
