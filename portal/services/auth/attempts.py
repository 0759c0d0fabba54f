"""Rate limits for passwords, and audit events of wrong ones.

Each account has a number of wrong passwords per hour from all networks where it has never logged
in, and the same number again for each network where it has. Each address has ten times as many, for
all accounts together that have never logged in from it. So guessing is slow, from one address or
many; nobody elsewhere can lock an account's owner out of the places where they usually work (only
those who share the address); and many people behind one address log in at once.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.auth.logins import FailedAttempts, LoginTerms, network_of
from portal.core.interfaces.monitoring import Measures
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.errors import TooManyLogins
from portal.store.attempts import AttemptStore, Limit

refusals = logging.getLogger("slipway")
"""Logger of refused log-ins; its name is the beginning of the line, which must not change."""
NETWORK_LIFETIME = timedelta(days=180)
"""How long the networks from which an account has logged in are remembered."""
MAX_NAMES = 10
"""Names with separate audit events, per network and hour."""
_ACCOUNTS = 10
"""An address has as many wrong passwords as so many accounts."""
_LOGINS = 60
"""Log-ins of an account per minute with the right password: each occupies the login node."""
_MINUTE, _HOUR = 60_000, 3_600_000
_FROM_ADDRESS = "Too many wrong passwords came from your network, where this account is new."
_FOR_ACCOUNT = "Too many log-ins of this account have failed."
"""Also without an answer of the login node, since it may have checked the password."""
_TOO_OFTEN = "This account logs in too often."
_AT_PROVIDER = "Too many log-ins from your network have failed."


@dataclass(frozen=True)
class Attempt:
    """An attempt whose password is being checked, and the limits that count it."""

    user: str
    network: str
    address: Limit | None
    """Counts it if it fails; None for an account that has logged in from there."""
    account: Limit | None = None
    """Has counted it."""
    logins: Limit | None = None
    """Counts it if it succeeds."""


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

    def take(self, user: str) -> Attempt:
        """Take one attempt; `user` is "" for an invalid name. Raises TooManyLogins."""
        network, now = network_of(self._address.get()), _ms(self._clock())
        name = user.lower()  # directories may ignore the case of names
        known = bool(name) and self._store.knows(name, network)
        address = self._of_address(network)
        logins = Limit(f"logins {name}", _MINUTE // _LOGINS, _LOGINS)
        failures, successes = self._store.until_room(now, address, logins)
        if not known:
            self._check(failures, _FROM_ADDRESS)
        if not user:
            return Attempt(user, network, address)
        self._check(successes, _TOO_OFTEN)
        key = f"known {name} {network}" if known else f"account {name}"
        account = Limit(key, _HOUR // self._terms.per_hour, self._terms.per_hour)
        # Taken before the password is checked: concurrent guesses cannot exceed this limit.
        self._check(self._store.take(account, now), _FOR_ACCOUNT)
        return Attempt(user, network, None if known else address, account, logins)

    def check_provider(self) -> None:
        """Raise TooManyLogins if too many log-ins by OpenID Connect failed at this address."""
        network, now = network_of(self._address.get()), _ms(self._clock())
        self._check(self._store.until_room(now, self._at_provider(network))[0], _AT_PROVIDER)

    def _check(self, wait: int, text: str) -> None:
        if wait:
            self._measures.login("limited")
            raise TooManyLogins(text, -(-wait // 1000))

    def _of_address(self, network: str, key: str = "address") -> Limit:
        burst = _ACCOUNTS * self._terms.per_hour
        return Limit(f"{key} {network}", _HOUR // burst, burst)

    def _at_provider(self, network: str) -> Limit:
        # Apart from passwords: these fail without one, and must not keep those with one out.
        return self._of_address(network, "provider")

    def succeeded(self, attempt: Attempt) -> None:
        """The password was right: return the attempt, and remember the network."""
        self._measures.login("ok")
        user, now = attempt.user.lower(), _ms(self._clock())
        self._store.succeeded(user, attempt.network, now, attempt.logins, attempt.account)

    def not_tried(self, attempt: Attempt) -> None:
        """The password was sent to nobody: return the attempt."""
        if attempt.account:
            self._store.give_back(attempt.account)

    def remember(self, user: str) -> None:
        """The user logged in without a password: remember the network."""
        network = network_of(self._address.get())
        self._store.succeeded(user.lower(), network, _ms(self._clock()))

    def refused(self, attempt: Attempt) -> None:
        """The password was wrong: count it at the address, and write it down."""
        if attempt.address:
            self._store.add(attempt.address, _ms(self._clock()))
        self.write_refusal(attempt.user)

    def refused_by_provider(self) -> None:
        """A log-in by OpenID Connect has failed: count it at the address."""
        network = network_of(self._address.get())
        self._store.add(self._at_provider(network), _ms(self._clock()))

    def write_refusal(self, user: str) -> None:
        """Write a refusal down; the first in each hour also to the audit log.

        Each is a line of the log, in a form that fail2ban reads (docs/monitoring). `user` is "" for
        text that cannot be an account's name: it may be a password in the wrong field.
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
