"""Who administers the site: users by name, and members of Unix groups of the login node."""

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

MEMBER_TRUSTED = timedelta(minutes=1)
"""How long a membership is believed without asking again."""
OTHERS_TRUSTED = timedelta(minutes=10)
"""The same for who is no member: asked again at their next log-in as well."""
KEPT = timedelta(minutes=5)
"""How long the last answer counts while the login node does not answer."""
SILENCE = timedelta(seconds=15)
"""After a question without an answer nobody asks for this long: threads would wait one by one."""
WAIT_SECONDS = 3.0
"""How long parallel requests of somebody unknown wait for the answer that one of them asks for."""
MAX_KNOWN = 10_000


@dataclass
class _Known:
    member: bool
    asked: datetime
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
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        self._first = threading.Lock()
        self._silent_until: datetime | None = None

    def includes(self, user: str, since: datetime | None = None) -> bool:
        """Whether the user is an administrator now; an unanswered question makes nobody one.

        `since`: when the user logged in. Who was no member before that is asked about again, in
        each process, as requests of one login come to all of them.
        """
        if user in self._users:
            return True
        if not self._groups:
            return False
        if since is not None:
            self._forget_others(user, since)
        waits = not self._is_known(user) and self._first.acquire(timeout=WAIT_SECONDS)
        try:
            return self._is_member(user)
        finally:
            if waits:
                self._first.release()

    def _is_known(self, user: str) -> bool:
        with self._lock:
            known = self._known.get(user)
            return known is not None and known.answered is not None

    def _forget_others(self, user: str, since: datetime) -> None:
        with self._lock:
            known = self._known.get(user)
            if known is not None and known.answered and not known.member and known.asked < since:
                del self._known[user]

    def _is_member(self, user: str) -> bool:
        now = self._clock()
        if self._claim(user, now):
            self._ask(user, now)
        with self._lock:
            known = self._known.get(user)
            if known is None or known.answered is None:
                return False
            return known.member and now - known.answered <= KEPT

    def _claim(self, user: str, now: datetime) -> bool:
        """Whether this thread is to ask; others go on with the last answer."""
        with self._lock:
            known = self._known.get(user)
            if self._silent_until is not None and now < self._silent_until:
                return False
            if known is None:
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[user] = _Known(member=False, asked=now, answered=None)
                return True
            trusted = OTHERS_TRUSTED if known.answered and not known.member else MEMBER_TRUSTED
            if now - known.asked < trusted:
                return False
            known.asked = now
            return True

    def _ask(self, user: str, now: datetime) -> None:
        try:
            identity = self._accounts.identity(user)
        except PortalError as error:
            log.warning("groups of %s: not known: %s", user, error)
            self._silent_until = now + SILENCE
            return
        member = identity is not None and not identity.groups.isdisjoint(self._groups)
        with self._lock:
            self._known[user] = _Known(member, asked=now, answered=now)
            self._silent_until = None
