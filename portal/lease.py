"""The lease of the one worker that acts for all portal hosts: taken, renewed, given back."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from portal.core.hosts import GIVE_UP_SECONDS, RENEW_SECONDS
from portal.errors import DatabaseUnavailable
from portal.store.lease import LeaseStore

log = logging.getLogger(__name__)

_NO_ANSWER = (SQLAlchemyError, DatabaseUnavailable)


def end_at_once() -> None:
    """End this process without anything else: threads may be about to act on the site."""
    os._exit(1)


class Lease:
    """One worker's hold on the lease.

    With `fenced`, it ends the process as soon as the lease is lost, or cannot be renewed, before
    another worker may take it; transactions are refused by the fence anyway. Without it the worker
    holds another lock, and the lease only shows that.
    """

    def __init__(
        self,
        store: LeaseStore,
        host: str,
        took: Callable[[int], None],
        *,
        fenced: bool,
        lost: Callable[[], None] = end_at_once,
    ) -> None:
        self._store = store
        self._host = host
        self._took = took
        self._fenced = fenced
        self._lost = lost
        self._number: int | None = None
        self._renewed = time.monotonic()
        self._said = ""

    def acquire(self) -> bool:
        """Try to take the lease; says once who has it."""
        begun = time.monotonic()
        try:
            number = self._store.acquire(self._host, os.getpid())
            if number is None:
                self._say(f"another worker runs on {self._store.holder()}, waiting")
                return False
        except _NO_ANSWER as error:
            self._say(f"the database does not answer, waiting ({type(error).__name__})")
            return not self._fenced
        self._number, self._renewed = number, begun
        self._took(number)
        log.info("this worker acts for the site: %s, process %d", self._host, os.getpid())
        return True

    def _say(self, text: str) -> None:
        if text != self._said:
            log.warning(text)
        self._said = text

    def keep(self) -> None:
        """Renew the lease from now on, in two threads of its own."""
        threading.Thread(target=self._renew_often, daemon=True).start()
        if self._fenced:
            threading.Thread(target=self._watch, daemon=True).start()

    def _renew_often(self) -> None:
        while self._number is not None:
            self.renew()
            time.sleep(RENEW_SECONDS if self._fenced else 10 * RENEW_SECONDS)

    def renew(self) -> None:
        """Renew it once; `lost` is called if another worker has it."""
        begun, number = time.monotonic(), self._number
        if number is None:
            return
        try:
            if self._store.renew(number):
                self._renewed = begun
                return
        except _NO_ANSWER as error:
            log.warning("the worker's lease is not renewed: %s", type(error).__name__)
            return
        if self._fenced and self._number is not None:
            log.error("another worker has taken over from this one, which ends")
            self._lost()

    def is_due(self) -> bool:
        """Whether it is so long since it was renewed that another worker is about to take it."""
        return time.monotonic() - self._renewed > GIVE_UP_SECONDS

    def _watch(self) -> None:
        """Apart from the renewal, which a database that does not answer keeps waiting."""
        while self._number is not None:
            if self.is_due():
                log.error("the worker's lease could not be renewed; this worker ends")
                self._lost()
            time.sleep(0.2)

    def release(self) -> None:
        """Give it back, so that another worker need not wait."""
        number, self._number = self._number, None
        if number is None:
            return
        try:
            self._store.release(number)
        except _NO_ANSWER as error:
            log.warning("the worker's lease is not given back: %s", type(error).__name__)
