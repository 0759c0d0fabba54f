"""How long requests wait for work that background threads do for them."""

from __future__ import annotations

import threading

LONG_WAITS = 1
"""Requests of a web process that wait long at once, for whatever: with those of users' operations
(adapters/ssh/per_user.ThreadBudget) they leave threads to all others."""


class RequestWaits:
    """Has few requests wait long and the others briefly, so that these never hold all threads."""

    def __init__(
        self, long: float, short: float, slots: threading.BoundedSemaphore | None = None
    ) -> None:
        """Times in seconds; `slots`: shared by all kinds of work of a process."""
        self._slots = slots or threading.BoundedSemaphore(LONG_WAITS)
        self._long = long
        self._short = short

    def wait(self, ended: threading.Event) -> bool:
        """Wait for the end of the work; returns whether it has ended."""
        is_long = self._slots.acquire(blocking=False)
        try:
            return ended.wait(self._long if is_long else self._short)
        finally:
            if is_long:
                self._slots.release()
