"""Revokes the logins of removed or locked accounts within a minute.

No user is logged out because the login node does not answer; if many accounts vanish together, they
are logged out only after a while, since a directory outage looks the same.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from portal.core.auth.accounts import LOCKED
from portal.core.interfaces.auth import Accounts
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.core.session.session import Session
from portal.errors import PortalError, Unavailable
from portal.services.apps.apps import Apps
from portal.services.auth.logins import Logins
from portal.store.logins import LoginStore
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

CHECK_SECONDS = 25.0
"""Time between two checks; two of them, with their duration, take less than a minute."""
ACTIVE = timedelta(minutes=10)
"""Users who have used a login within this time are checked by logging in as them."""
DOUBT = timedelta(minutes=10)
"""How long many accounts must be missing at once before they are considered removed."""
AT_ONCE = 4
GONE = "the account no longer exists, or has no login shell"
REFUSED = "the login node refuses the account"
PASSWORD = "the account's password was locked"  # noqa: S105


class AccountWatch:
    """Checks the accounts of users who are logged in or have a session."""

    def __init__(
        self,
        *,
        accounts: Accounts,
        logins: Logins,
        login_store: LoginStore,
        apps: Apps,
        sessions: SessionStore,
        clock: Clock,
        record: RecordEvent,
        checks: int,
    ) -> None:
        self._accounts = accounts
        self._logins = logins
        self._login_store = login_store
        self._apps = apps
        self._sessions = sessions
        self._clock = clock
        self._record = record
        self._checks = checks
        self._checked: dict[str, datetime] = {}
        self._gone_since: dict[str, datetime] = {}
        self._locked_out: set[str] = set()

    def check(self) -> None:
        """Run one check; raises Unavailable when the login node does not answer."""
        now, live = self._clock(), self._sessions.live()
        inside = self._login_store.inside(now - ACTIVE, now) | {s.owner for s in live}
        users = inside | {present.user for present in self._logins.active_users()}
        gone = self._gone(users, now) if users else set()
        refused = dict.fromkeys(gone, GONE) | self._refused(inside - gone)
        for user, why in refused.items():
            self._lock_out(user, why, [s for s in live if s.owner == user])
        self._locked_out &= set(refused)

    def _gone(self, names: Collection[str], now: datetime) -> set[str]:
        """The users whose accounts are considered removed."""
        missing = self._accounts.missing(names)
        self._gone_since = {user: self._gone_since.get(user, now) for user in missing}
        fresh = {user for user in missing if now - self._gone_since[user] < DOUBT}
        if len(fresh) <= max(1, (len(names) - len(missing)) // 10) and len(missing) < len(names):
            return missing
        log.warning("%d of %d accounts are not found, all at once", len(missing), len(names))
        return missing - fresh

    def _refused(self, names: Collection[str]) -> dict[str, str]:
        """The users who cannot log in, with the reason; least recently checked users first."""
        longest = datetime.min.replace(tzinfo=self._clock().tzinfo)
        ordered = sorted(names, key=lambda user: (self._checked.get(user, longest), user))
        # Two checks a minute share the permitted number per minute.
        chosen = ordered[: -(-self._checks // 2)]
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="accounts") as pool:
            problems = dict(zip(chosen, pool.map(self._problem, chosen), strict=True))
        self._checked = {user: self._checked[user] for user in names if user in self._checked}
        return {user: why for user, why in problems.items() if why}

    def _problem(self, user: str) -> str:
        try:
            standing = self._accounts.standing(user)
        except Unavailable as error:
            log.warning("account %s: not checked: %s", user, error)
            return ""
        self._checked[user] = self._clock()
        if not standing.may_log_in:
            return REFUSED
        before = self._login_store.password_seen(user)
        if standing.password in ("", before):
            return ""
        self._login_store.note_password(user, standing.password)
        # If it was locked from the beginning, passwords are verified by another mechanism.
        return PASSWORD if standing.password == LOCKED and before else ""

    def _lock_out(self, user: str, reason: str, sessions: Collection[Session]) -> None:
        if user not in self._locked_out:
            self._record(user, "account.out", "", reason)
        self._locked_out.add(user)
        try:
            self._logins.revoke_all(user, user, why=reason)
        except PortalError as error:
            log.warning("account %s: not everything revoked yet: %s", user, error)
        for session in sessions:
            try:
                if self._apps.opened(session.id) or self._apps.in_use(session.id):
                    self._apps.close_session(session.id)
            except PortalError as error:
                log.warning("session %s: not everything revoked yet: %s", session.id, error)
