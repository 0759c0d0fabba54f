"""Sessions that wait in this process for their submission, which the worker leaves to it.

The worker submits what has waited for a minute (recovery.py), since the process that stored it may
have died. With many launches, or a slow Slurm, some wait longer in a process that lives: each of
them would cost Slurm two searches and an attempt that nobody has made.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from datetime import timedelta

from portal.core.interfaces.systems import Clock
from portal.errors import DatabaseUnavailable
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

RENEWAL_SECONDS = 15.0
"""Between two renewals; two of them may fail before the worker takes over (60 s)."""
LONGEST = timedelta(minutes=15)
"""After which the worker may submit them even so: the threads of this process may hang."""


class WaitingSessions:
    """The stored sessions that this process has not begun to submit."""

    def __init__(self, store: SessionStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._ids: set[str] = set()

    def start(self) -> None:
        """Renew them in a thread, as long as the process lives."""
        threading.Thread(target=self._renew_repeatedly, name="waiting", daemon=True).start()

    def add(self, ids: Collection[str]) -> None:
        """Keep them for this process."""
        with self._lock:
            self._ids.update(ids)

    def remove(self, ids: Collection[str]) -> None:
        """They are being submitted, or left to the worker."""
        with self._lock:
            self._ids.difference_update(ids)

    def renew(self) -> None:
        """Note in the database that they still wait here."""
        with self._lock:
            ids = set(self._ids)
        if ids:
            now = self._clock()
            self._store.keep_waiting(ids, now - LONGEST, now)

    def _renew_repeatedly(self) -> None:
        while True:
            time.sleep(RENEWAL_SECONDS)
            try:
                self.renew()
            except DatabaseUnavailable:
                pass  # portal/store logs it
            except Exception:
                log.exception("renewing sessions that wait for their submission")
