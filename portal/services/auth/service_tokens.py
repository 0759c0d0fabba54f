"""Tokens of services that act for users: create, list, revoke, use."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from portal.core.account_names import AccountNames
from portal.core.auth.accounts import Identity
from portal.core.auth.logins import MARK
from portal.core.auth.person import Person, hash_secret
from portal.core.auth.service_tokens import ServiceToken, problems, refusal
from portal.core.interfaces.auth import Accounts
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.errors import FieldError, Forbidden, InvalidRequest, NotFound, Unauthorized
from portal.store.service_tokens import ServiceTokenStore

MAX_DAYS = 3650
IDENTITY_TTL = timedelta(minutes=1)
"""How long an account's groups are cached."""
READ_AUDIT_INTERVAL = timedelta(hours=1)
"""Reads for the same user are audited once per interval; changes are always audited."""
MAX_CACHED = 10_000


class ServiceTokens:
    """Creates, finds and revokes services' tokens."""

    def __init__(
        self,
        store: ServiceTokenStore,
        accounts: Accounts,
        names: AccountNames,
        min_uid: int,
        clock: Clock,
        record: RecordEvent,
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._names = names
        self._min_uid = min_uid
        self._clock = clock
        self._record = record
        self._cache: dict[str, tuple[datetime, Identity | None]] = {}

    def make(
        self, by: str, name: str, users: Collection[str], groups: Collection[str], days: int
    ) -> tuple[str, ServiceToken]:
        """Create a token; the secret is returned once and never stored. Raises InvalidRequest."""
        invalid = problems(name, users, groups, self._names)
        if not 1 <= days <= MAX_DAYS:
            invalid.append(FieldError("days", f"choose 1 to {MAX_DAYS} days"))
        if invalid:
            raise InvalidRequest(invalid)
        secret, now = MARK + secrets.token_urlsafe(32), self._clock()
        token = ServiceToken(
            hash=hash_secret(secret),
            id=secrets.token_hex(8),
            name=name,
            users=tuple(dict.fromkeys(users)),
            groups=tuple(dict.fromkeys(groups)),
            created=now,
            used=None,
            expires=now + timedelta(days=days),
        )
        self._store.add(token)
        detail = f"{name}: users {', '.join(users) or '-'}; groups {', '.join(groups) or '-'}"
        self._record(by, "service.make", token.id, detail)
        return secret, token

    def all(self) -> list[ServiceToken]:
        """All tokens, also expired ones, by name."""
        return self._store.all()

    def revoke(self, by: str, id: str) -> None:
        """Revoke a token; sessions and jobs started with it go on. Raises NotFound."""
        token = self._store.remove(id)
        if token is None:
            raise NotFound(f"There is no service token {id}.")
        self._record(by, "service.revoke", id, token.name)

    def person(self, secret: str, user: str, request: str, changes: bool) -> Person:
        """The user that the token acts for in a `request`; never as an administrator.

        Raises Unauthorized for an unknown token, Forbidden with the reason, and Unavailable while
        the login node does not answer.
        """
        token = self._store.find(hash_secret(secret), self._clock())
        if token is None:
            raise Unauthorized("This service token is unknown, has expired or was revoked.")
        if text := refusal(token, user, self._identity(user), self._min_uid):
            raise Forbidden(text)
        self._note(token, user, request, changes)
        return Person(user, admin=False, login=token.hash, service=token.name)

    def _identity(self, user: str) -> Identity | None:
        now = self._clock()
        queried, identity = self._cache.get(user, (now - 2 * IDENTITY_TTL, None))
        if now - queried > IDENTITY_TTL:
            identity = self._accounts.identity(user)
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[user] = (now, identity)
        return identity

    def _note(self, token: ServiceToken, user: str, request: str, changes: bool) -> None:
        now = self._clock()
        since = now if changes else now - READ_AUDIT_INTERVAL
        if self._store.note_use(token.id, user, now, since):
            self._record(token.name, "service.use", user, request)
