"""The site's administrators: users by name, and members of Unix groups of the login node."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.interfaces.auth import Accounts
from portal.core.interfaces.systems import Clock
from portal.errors import PortalError

log = logging.getLogger(__name__)

MEMBER_TTL = timedelta(minutes=1)
"""Cache lifetime for members."""
NON_MEMBER_TTL = timedelta(minutes=10)
"""Cache lifetime for non-members, whose entry is also dropped at their next log-in."""
STALE_TTL = timedelta(minutes=5)
"""How long the last answer counts while the login node does not answer."""
RETRY_AFTER = timedelta(seconds=15)
"""Pause after a query without an answer: otherwise each thread would wait in turn."""
WAIT_SECONDS = 3.0
"""How long concurrent requests of a user who is not cached wait for the query of the first."""
MAX_CACHED = 10_000


@dataclass
class _Membership:
    member: bool
    requested: datetime
    answered: datetime | None
    """None: never."""


class Administrators:
    """Decides whether a user is an administrator; shared by all threads of a process."""

    def __init__(
        self, users: Collection[str], groups: Collection[str], accounts: Accounts, clock: Clock
    ) -> None:
        self._users = frozenset(users)
        self._groups = frozenset(groups)
        self._accounts = accounts
        self._clock = clock
        self._cache: dict[str, _Membership] = {}
        self._lock = threading.Lock()
        self._first = threading.Lock()
        self._retry_at: datetime | None = None

    def includes(self, user: str, since: datetime | None = None) -> bool:
        """Whether the user is an administrator now; False if the login node does not answer.

        `since`: when the user logged in. Answers from before that time that the user is not a
        member are dropped, in each process, since requests of one login reach all of them.
        """
        if user in self._users:
            return True
        if not self._groups:
            return False
        if since is not None:
            self._drop_non_member(user, since)
        is_first = not self._is_cached(user) and self._first.acquire(timeout=WAIT_SECONDS)
        try:
            return self._is_member(user)
        finally:
            if is_first:
                self._first.release()

    def _is_cached(self, user: str) -> bool:
        with self._lock:
            cached = self._cache.get(user)
            return cached is not None and cached.answered is not None

    def _drop_non_member(self, user: str, since: datetime) -> None:
        with self._lock:
            cached = self._cache.get(user)
            if (
                cached is not None
                and cached.answered
                and not cached.member
                and cached.requested < since
            ):
                del self._cache[user]

    def _is_member(self, user: str) -> bool:
        now = self._clock()
        if self._claim(user, now):
            self._query(user, now)
        with self._lock:
            cached = self._cache.get(user)
            if cached is None or cached.answered is None:
                return False
            return cached.member and now - cached.answered <= STALE_TTL

    def _claim(self, user: str, now: datetime) -> bool:
        """Whether this thread should query; others use the cached answer."""
        with self._lock:
            cached = self._cache.get(user)
            if self._retry_at is not None and now < self._retry_at:
                return False
            if cached is None:
                if len(self._cache) >= MAX_CACHED:
                    self._cache.clear()
                self._cache[user] = _Membership(member=False, requested=now, answered=None)
                return True
            ttl = NON_MEMBER_TTL if cached.answered and not cached.member else MEMBER_TTL
            if now - cached.requested < ttl:
                return False
            cached.requested = now
            return True

    def _query(self, user: str, now: datetime) -> None:
        try:
            identity = self._accounts.identity(user)
        except PortalError as error:
            log.warning("groups of %s: not known: %s", user, error)
            self._retry_at = now + RETRY_AFTER
            return
        member = identity is not None and not identity.groups.isdisjoint(self._groups)
        with self._lock:
            self._cache[user] = _Membership(member, requested=now, answered=now)
            self._retry_at = None
