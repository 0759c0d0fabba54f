"""Rate limits for passwords, and audit events of wrong ones.

Each address has a number of attempts per minute, for all names together. Each account has a number
of attempts per hour from all networks where it has never logged in, and the same number again for
each network where it has. So guessing from many addresses is slow, and cannot lock the account's
owner out of the places where they usually work.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import datetime, timedelta

from portal.core.auth.logins import FailedAttempts, LoginTerms, network_of
from portal.core.interfaces.monitoring import Measures
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.store.attempts import AttemptStore

refusals = logging.getLogger("slipway")
"""Logger of refused log-ins; its name is the beginning of the line, which must not change."""
NETWORK_LIFETIME = timedelta(days=180)
"""How long the networks from which an account has logged in are remembered."""
MAX_NAMES = 10
"""Names with separate audit events, per network and hour."""
_MINUTE, _HOUR = 60_000, 3_600_000


class LoginAttempts:
    """Counts and limits login attempts."""

    def __init__(
        self,
        store: AttemptStore,
        terms: LoginTerms,
        clock: Clock,
        record: RecordEvent,
        address: ContextVar[str],
        measures: Measures,
    ) -> None:
        self._store = store
        self._terms = terms
        self._clock = clock
        self._record = record
        self._address = address
        self._measures = measures

    def take(self, user: str) -> int:
        """Take one attempt; returns 0, or the seconds to wait. `user` is "" for an invalid name."""
        network, now = network_of(self._address.get()), _ms(self._clock())
        per_minute = self._terms.per_minute
        wait = self._store.take(f"address {network}", now, _MINUTE // per_minute, per_minute)
        if not wait and user:
            wait = self._store.take(
                self._key(user, network), now, self._interval, self._terms.per_hour
            )
        if wait:
            self._measures.login("limited")
        return -(-wait // 1000)

    @property
    def _interval(self) -> int:
        return _HOUR // self._terms.per_hour

    def _key(self, user: str, network: str) -> str:
        user = user.lower()  # directories may ignore the case of names
        has_logged_in = self._store.knows(user, network)
        return f"known {user} {network}" if has_logged_in else f"account {user}"

    def succeeded(self, user: str) -> None:
        """The password was right: return the attempt, and remember the network."""
        self._measures.login("ok")
        network = network_of(self._address.get())
        key = self._key(user, network)
        if key.startswith("known"):
            self._store.forgive(key)
        else:
            self._store.give_back(key, self._interval)
        self._store.remember(user.lower(), network, _ms(self._clock()))

    def remember(self, user: str) -> None:
        """The user logged in without a password: remember the network."""
        network = network_of(self._address.get())
        self._store.remember(user, network, _ms(self._clock()))

    def refused(self, user: str) -> None:
        """The password was wrong: the first time in each hour is written to the audit log.

        Each time is a line of the log, in a form that fail2ban reads (docs/monitoring). `user` is
        "" for text that cannot be an account's name: it may be a password in the wrong field.
        """
        self._measures.login("refused")
        refusals.warning("login refused for %s from %s", user or "-", self._address.get() or "-")
        hour = _ms(self._clock()) // _HOUR
        counted = self._store.refused(user, network_of(self._address.get()), hour, MAX_NAMES)
        if counted.count == 1:
            self._record(counted.user, "login.refused")

    def record_finished_hours(self) -> None:
        """Write the counts of past hours to the audit log, then delete expired rows."""
        now = self._clock()
        for attempts in self._store.refusals_before(_ms(now) // _HOUR):
            if attempts.count > 1:
                self._record_further(attempts)
            self._store.drop_refusals(attempts)
        self._store.expire(_ms(now), _ms(now - NETWORK_LIFETIME))

    def _record_further(self, attempts: FailedAttempts) -> None:
        count = attempts.count - 1
        text = f"{count} more {'time' if count == 1 else 'times'} within that hour"
        before = self._address.set(attempts.network)
        try:
            self._record(attempts.user, "login.refused", "", text)
        finally:
            self._address.reset(before)


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
