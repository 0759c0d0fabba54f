"""The lease of the worker that acts for all portal hosts."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from portal.core.hosts import GIVE_UP_SECONDS, RENEW_SECONDS
from portal.errors import DatabaseUnavailable
from portal.store.hosts import LeaseStore

log = logging.getLogger(__name__)

_NO_ANSWER = (SQLAlchemyError, DatabaseUnavailable)


def end_at_once() -> None:
    """Exit immediately, without cleanup: threads may be about to act on the site."""
    os._exit(1)


class Lease:
    """One worker's hold on the lease.

    With `fenced`, the process ends as soon as the lease is lost or cannot be renewed, before
    another worker may take it; the fence also refuses its transactions. Without `fenced`, another
    lock excludes other workers, and the lease is only informative.
    """

    def __init__(
        self,
        store: LeaseStore,
        host: str,
        on_acquired: Callable[[int], None],
        *,
        fenced: bool,
        on_lost: Callable[[], None] = end_at_once,
    ) -> None:
        self._store = store
        self._host = host
        self._on_acquired = on_acquired
        self._fenced = fenced
        self._on_lost = on_lost
        self._number: int | None = None
        self._renewed = time.monotonic()
        self._last_warning = ""

    def acquire(self) -> bool:
        """Try to take the lease; logs its holder once."""
        start = time.monotonic()
        try:
            number = self._store.acquire(self._host, os.getpid())
            if number is None:
                self._warn_once(f"another worker runs on {self._store.holder()}, waiting")
                return False
        except _NO_ANSWER as error:
            self._warn_once(f"the database does not answer, waiting ({type(error).__name__})")
            return not self._fenced
        self._number, self._renewed = number, start
        self._on_acquired(number)
        log.info("this worker acts for the site: %s, process %d", self._host, os.getpid())
        return True

    def _warn_once(self, text: str) -> None:
        if text != self._last_warning:
            log.warning(text)
        self._last_warning = text

    def keep(self) -> None:
        """Renew the lease from now on, in two threads."""
        threading.Thread(target=self._renew_often, daemon=True).start()
        if self._fenced:
            threading.Thread(target=self._watch, daemon=True).start()

    def _renew_often(self) -> None:
        while self._number is not None:
            self.renew()
            time.sleep(RENEW_SECONDS if self._fenced else 10 * RENEW_SECONDS)

    def renew(self) -> None:
        """Renew it once; calls `on_lost` if another worker has it."""
        start, number = time.monotonic(), self._number
        if number is None:
            return
        try:
            if self._store.renew(number):
                self._renewed = start
                return
        except _NO_ANSWER as error:
            log.warning("the worker's lease is not renewed: %s", type(error).__name__)
            return
        if self._fenced and self._number is not None:
            log.error("another worker has taken over from this one, which ends")
            self._on_lost()

    def is_due(self) -> bool:
        """Whether the last renewal is so old that another worker may soon take the lease."""
        return time.monotonic() - self._renewed > GIVE_UP_SECONDS

    def _watch(self) -> None:
        """Check the lease's age in a separate thread, since a renewal may block on the database."""
        while self._number is not None:
            if self.is_due():
                log.error("the worker's lease could not be renewed; this worker ends")
                self._on_lost()
            time.sleep(0.2)

    def release(self) -> None:
        """Return the lease, so that another worker need not wait for its expiry."""
        number, self._number = self._number, None
        if number is None:
            return
        try:
            self._store.release(number)
        except _NO_ANSWER as error:
            log.warning("the worker's lease is not given back: %s", type(error).__name__)
