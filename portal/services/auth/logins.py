"""Browser logins and API tokens: create, find, use, revoke, expire."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from portal.core.auth.logins import (
    BROWSER,
    BY_PASSWORD,
    KINDS,
    MARK,
    MAX_NAME,
    MAX_TOKENS,
    OIDC,
    PLAIN_SCOPES,
    SCOPES,
    TOKEN,
    Login,
    LoginTerms,
    Proof,
    Purpose,
    UserLogins,
)
from portal.core.auth.people import PeoplePage, PeopleQuery
from portal.core.auth.person import Person, hash_secret
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.errors import DatabaseFull, DatabaseUnavailable, FieldError, InvalidRequest, NotFound
from portal.services.auth.administrators import Administrators
from portal.store.logins import LoginStore

MINUTE = timedelta(minutes=1)
MAX_BROWSERS = 1000
"""Browser logins per user: more than anyone needs; bounds the number from a script."""


class Logins:
    """Creates, finds and revokes logins; a login's routes are revoked with it."""

    def __init__(
        self,
        *,
        store: LoginStore,
        terms: LoginTerms,
        administrators: Administrators,
        admin_issuer: str,
        clock: Clock,
        record: RecordEvent,
        revoke_routes: Callable[..., None],
        address: Callable[[], str],
    ) -> None:
        """`admin_issuer`: the OpenID provider whose groups make administrators; "" for none."""
        self._store = store
        self.terms = terms
        self._administrators = administrators
        self._admin_issuer = admin_issuer
        self._clock = clock
        self._record = record
        self._revoke_routes = revoke_routes
        self._address = address

    # Creating

    def open_browser(self, user: str, proof: Proof = BY_PASSWORD) -> tuple[str, Login]:
        """Create a browser login; the secret is returned once and never stored."""
        secret, login = self._make(user, BROWSER, "", (), self.terms.idle)
        login = replace(login, **vars(proof))
        if not self._store.add_login(login, MAX_BROWSERS):
            self.revoke_all(user, user, (BROWSER,))
            self._store.add_login(login, MAX_BROWSERS)
        detail = f"{OIDC}: {proof.subject}" if proof.method == OIDC else ""
        self._record(user, "login", login.id if detail else "", detail)
        return secret, login

    def make_token(
        self,
        person: Person,
        name: str,
        scopes: Sequence[str] | None,
        days: int | None,
        purpose: Purpose | None = None,
    ) -> tuple[str, Login]:
        """Create a token; the secret is returned once and never stored.

        A token created with another token has no more scopes than that and does not outlive it.
        One with a purpose replaces the user's earlier ones with the same purpose and name. Raises
        InvalidRequest.
        """
        parent = self._token_of(person)
        allowed = self.scopes_for(person)
        days = self.terms.token_days if days is None else days
        chosen = tuple(s for s in SCOPES if s in (allowed if scopes is None else scopes))
        if problems := self._problems(name, chosen, allowed, days):
            raise InvalidRequest(problems)
        secret, login = self._make(person.name, TOKEN, name, chosen, timedelta(days=days))
        end = login.expires if parent is None else min(parent.expires, login.expires)
        login = replace(login, expires=end, purpose=purpose or "")
        if not self._store.add_login(login, MAX_TOKENS):
            text = f"you have {MAX_TOKENS} tokens already; revoke one first"
            raise InvalidRequest([FieldError("name", text)])
        self._record(person.name, "token.make", login.id, f"{name}: {' '.join(chosen)}")
        if purpose:
            self._revoke_replaced(login)
        return secret, login

    def _revoke_replaced(self, login: Login) -> None:
        """Revoke the tokens that this one replaces: of two concurrent ones the later stays."""
        record = partial(self._record_revoked, by=login.user, why="replaced by a new one")
        for earlier in self.logins_of(login.user, TOKEN):
            same = (earlier.purpose, earlier.name) == (login.purpose, login.name)
            if same and earlier.id != login.id and earlier.created <= login.created:
                self._revoke(login.user, record, id=earlier.id)

    def scopes_for(self, person: Person) -> tuple[str, ...]:
        """The scopes that the user's new token may have."""
        parent = self._token_of(person)
        available = SCOPES if person.admin or self.is_admin(person.name) else PLAIN_SCOPES
        return tuple(s for s in available if parent is None or parent.allows(s))

    def _token_of(self, person: Person) -> Login | None:
        login = self._store.login(person.login, self._clock())
        return login if login is not None and login.kind == TOKEN else None

    def _problems(
        self, name: str, chosen: Sequence[str], allowed: Sequence[str], days: int
    ) -> list[FieldError]:
        problems = []
        if not (0 < len(name) <= MAX_NAME and name.isprintable() and name.strip() == name):
            text = f"use 1 to {MAX_NAME} printable characters, without spaces at the ends"
            problems.append(FieldError("name", text))
        if not chosen:
            problems.append(FieldError("scopes", "choose at least one"))
        if beyond := [scope for scope in chosen if scope not in allowed]:
            text = f"{beyond[0]} is more than you may give; choose of: {', '.join(allowed)}"
            problems.append(FieldError("scopes", text))
        if not 1 <= days <= self.terms.token_days:
            problems.append(FieldError("days", f"choose 1 to {self.terms.token_days} days"))
        return problems

    def _make(
        self, user: str, kind: str, name: str, scopes: tuple[str, ...], life: timedelta
    ) -> tuple[str, Login]:
        secret, now = MARK + secrets.token_urlsafe(32), self._clock()
        return secret, Login(
            hash=hash_secret(secret),
            id=secrets.token_hex(8),
            kind=kind,
            user=user,
            name=name,
            scopes=scopes,
            created=now,
            used=now,
            expires=now + life,
            address=self._address(),
        )

    # Using

    def is_admin(self, user: str, since: datetime | None = None) -> bool:
        """Whether the user, who logged in at `since`, is an administrator of the site."""
        return self._administrators.includes(user, since)

    def newcomer(self, user: str) -> Person:
        """A user who has just been authenticated by password, without a login yet."""
        return Person(user, self.is_admin(user, self._clock()), login="")

    def find(self, secret: str, kind: str) -> Login | None:
        """The live login behind a secret."""
        now = self._clock()
        login = self._store.login(hash_secret(secret), now)
        if login is None or login.kind != kind or self._last(login) < now:
            return None
        return login

    def person(self, login: Login) -> Person:
        """The user of a login; an administrator only if the login has that scope."""
        admin = login.allows("admin") and (
            self.is_admin(login.user, login.created) or self._by_group(login)
        )
        return Person(login.user, admin, login.hash)

    def _by_group(self, login: Login) -> bool:
        """Whether the user is an administrator by the provider's groups.

        The provider reports them at log-in only, so they hold for that login, and for the user's
        tokens only while such a login is live.
        """
        issuer = self._admin_issuer
        if not issuer:
            return False
        if login.kind == BROWSER:
            return login.admin and login.issuer == issuer
        return self._store.is_provider_admin(issuer, login.user, self._clock())

    def may_administer(self, user: str) -> bool:
        """Whether the user is an administrator, by name or by a live login."""
        issuer = self._admin_issuer
        return self.is_admin(user) or (
            bool(issuer) and self._store.is_provider_admin(issuer, user, self._clock())
        )

    def keep_alive(self, login: Login) -> None:
        """Store the use, at most once a minute; extends a browser login's expiry.

        Does nothing while the database is full or does not answer, so that reading still works.
        """
        now = self._clock()
        if login.created < login.used and now - login.used < MINUTE:
            return
        expires = login.expires
        if login.kind == BROWSER:
            expires = min(now + self.terms.idle, self._last(login))
        with suppress(DatabaseFull, DatabaseUnavailable):
            self._store.use_login(login.hash, now, expires)

    def note_visible(self, login: Login) -> None:
        """Store that a page of a browser is visible, at most once a minute; its expiry remains.

        Does nothing while the database is full or does not answer.
        """
        now = self._clock()
        if now - max(login.used, login.seen or login.used) < MINUTE:
            return
        with suppress(DatabaseFull, DatabaseUnavailable):
            self._store.see_login(login.hash, now)

    def last_day(self, login: Login) -> datetime:
        """When it expires at the latest, even if it is in use."""
        return self._last(login)

    def _last(self, login: Login) -> datetime:
        return login.created + self.terms.life if login.kind == BROWSER else login.expires

    # Listing and revoking

    def logins_of(self, user: str, kind: str | None = None) -> list[Login]:
        """A user's live logins (of one kind), newest first."""
        logins = self._store.logins(user, self._clock())
        return [login for login in logins if kind in (None, login.kind)]

    def active_users(self) -> list[UserLogins]:
        """All users with a live login or token, by name."""
        return self._store.present(self._clock())

    def people(self, query: PeopleQuery) -> PeoplePage:
        """One page of the users with a live login or token."""
        return self._store.people(query, self._clock())

    def log_out(self, person: Person) -> None:
        """Log out, and revoke every route opened with this login."""
        login = self._store.login(person.login, self._clock())
        if login is not None:
            self._revoke(person.name, lambda _: self._record(person.name, "logout"), id=login.id)

    def revoke_login(self, user: str, id: str, by: str, kinds: Collection[str] = KINDS) -> None:
        """Revoke one login; raises NotFound."""
        revoked = self._revoke(
            user, lambda login: self._record_revoked(login, by), id=id, kinds=kinds
        )
        if not revoked:
            raise NotFound("There is no such token or login.")

    def revoke_provided(self, issuer: str, subject: str, sid: str) -> int:
        """Revoke the logins of a provider's session or subject, as it asked; their number."""
        logins = self._store.provider_logins(issuer, subject, sid, self._clock())
        record = partial(self._record_revoked, why="the OpenID provider ended the session")
        return sum(
            len(self._revoke(login.user, partial(record, by=login.user), id=login.id))
            for login in logins
        )

    def revoke_all(self, user: str, by: str, kinds: Collection[str] = KINDS, why: str = "") -> int:
        """Revoke all of these kinds; returns their number.

        With all kinds, app access of expired logins is revoked as well.
        """
        record = partial(self._record_revoked, by=by, why=why)
        return len(self._revoke(user, record, kinds=kinds))

    def _revoke(
        self,
        user: str,
        write: Callable[[Login], None],
        id: str | None = None,
        kinds: Collection[str] = KINDS,
    ) -> list[Login]:
        revoked, keys = self._store.revoke(user, self._clock(), id=id, kinds=kinds)
        for login in revoked:
            write(login)
        # After the store, from which HAProxy's map is restored.
        self._revoke_routes(*keys)
        return revoked

    def _record_revoked(self, login: Login, by: str, why: str = "") -> None:
        subject = f"token {login.name}" if login.kind == TOKEN else "browser"
        detail = (
            subject
            + ("" if by == login.user else f" of {login.user}")
            + (f": {why}" if why else "")
        )
        self._record(by, f"{login.kind}.revoke", login.id, detail)

    def revoke_left_over(self) -> None:
        """Revoke routes that a concurrent request opened while its login was being revoked."""
        if keys := self._store.left_over(self._clock()):
            self._revoke_routes(*keys)

    def expire(self) -> None:
        """Delete expired logins."""
        self._store.expire(self._clock())
