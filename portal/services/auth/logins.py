"""Who is logged in: browsers and tokens, how they come, last, and are taken back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from portal.core.auth.logins import (
    BROWSER,
    KINDS,
    MARK,
    MAX_NAME,
    MAX_TOKENS,
    PLAIN_SCOPES,
    SCOPES,
    TOKEN,
    Login,
    LoginTerms,
    UserLogins,
)
from portal.core.auth.person import Person, hash_secret
from portal.core.interfaces.auth import LoginStore
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.errors import FieldError, InvalidRequest, NotFound

MINUTE = timedelta(minutes=1)
MAX_BROWSERS = 1000
"""Browsers of one person: beyond what anybody has, within what a script may do."""


class Logins:
    """Makes, finds and takes back logins; whatever was opened from one shuts with it."""

    def __init__(
        self,
        *,
        store: LoginStore,
        terms: LoginTerms,
        admins: Collection[str],
        clock: Clock,
        note: RecordEvent,
        shut: Callable[..., None],
        address: Callable[[], str],
    ) -> None:
        self.store = store
        self.terms = terms
        self._admins = frozenset(admins)
        self._clock = clock
        self._note = note
        self._shut = shut
        self._address = address

    # Making

    def open_browser(self, user: str) -> tuple[str, Login]:
        """A new login of a browser; the secret is returned once and never kept."""
        secret, login = self._make(user, BROWSER, "", (), self.terms.idle)
        if not self.store.add_login(login, MAX_BROWSERS):
            self.revoke(user, user, (BROWSER,))
            self.store.add_login(login, MAX_BROWSERS)
        self._note(user, "login")
        return secret, login

    def make_token(
        self, person: Person, name: str, scopes: Sequence[str] | None, days: int | None
    ) -> tuple[str, Login]:
        """A new token; the secret is returned once and never kept.

        A token that is made with another one can do no more than that one, and does not outlive it.
        Raises InvalidRequest.
        """
        made_with = self._token_of(person)
        allowed = self.scopes_for(person)
        days = self.terms.token_days if days is None else days
        wanted = tuple(s for s in SCOPES if s in (allowed if scopes is None else scopes))
        if problems := self._problems(name, wanted, allowed, days):
            raise InvalidRequest(problems)
        secret, login = self._make(person.name, TOKEN, name, wanted, timedelta(days=days))
        if made_with is not None and made_with.expires < login.expires:
            login = Login(**{**vars(login), "expires": made_with.expires})
        if not self.store.add_login(login, MAX_TOKENS):
            text = f"you have {MAX_TOKENS} tokens already; revoke one first"
            raise InvalidRequest([FieldError("name", text)])
        self._note(person.name, "token.make", login.id, f"{name}: {' '.join(wanted)}")
        return secret, login

    def scopes_for(self, person: Person) -> tuple[str, ...]:
        """What a new token of theirs may be allowed."""
        made_with = self._token_of(person)
        own = SCOPES if person.name in self._admins else PLAIN_SCOPES
        return tuple(s for s in own if made_with is None or made_with.allows(s))

    def _token_of(self, person: Person) -> Login | None:
        found = self.store.login(person.login, self._clock())
        return found if found is not None and found.kind == TOKEN else None

    def _problems(
        self, name: str, wanted: Sequence[str], allowed: Sequence[str], days: int
    ) -> list[FieldError]:
        problems = []
        if not (0 < len(name) <= MAX_NAME and name.isprintable() and name.strip() == name):
            text = f"write one line of 1 to {MAX_NAME} characters, no blank at its ends"
            problems.append(FieldError("name", text))
        if not wanted:
            problems.append(FieldError("scopes", "choose at least one"))
        if beyond := [scope for scope in wanted if scope not in allowed]:
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

    def find(self, secret: str, kind: str) -> Login | None:
        """The live login behind a secret."""
        now = self._clock()
        login = self.store.login(hash_secret(secret), now)
        if login is None or login.kind != kind or self._last(login) < now:
            return None
        return login

    def person(self, login: Login) -> Person:
        """The person behind a login; an administrator only where the login may be one."""
        admin = login.user in self._admins and login.allows("admin")
        return Person(login.user, admin, login.hash)

    def keep_alive(self, login: Login) -> None:
        """Note its first use, then one a minute at most; a browser's end is pushed back."""
        now = self._clock()
        if login.created < login.used and now - login.used < MINUTE:
            return
        expires = login.expires
        if login.kind == BROWSER:
            expires = min(now + self.terms.idle, self._last(login))
        self.store.use_login(login.hash, now, expires)

    def last_day(self, login: Login) -> datetime:
        """When it ends, however much it is used."""
        return self._last(login)

    def _last(self, login: Login) -> datetime:
        return login.created + self.terms.life if login.kind == BROWSER else login.expires

    # Seeing and taking back

    def of(self, user: str, kind: str | None = None) -> list[Login]:
        """Somebody's live logins (of one kind), newest first."""
        found = self.store.logins(user, self._clock())
        return [login for login in found if kind in (None, login.kind)]

    def present(self) -> list[UserLogins]:
        """Everybody who has a live login or token, by name."""
        return self.store.present(self._clock())

    def leave(self, person: Person) -> None:
        """Log out, and shut every app that was opened from this login."""
        login = self.store.login(person.login, self._clock())
        if login is not None:
            self._take_back(person.name, lambda _: self._note(person.name, "logout"), id=login.id)

    def revoke_one(self, user: str, id: str, by: str, kinds: Collection[str] = KINDS) -> None:
        """Take one login back; raises NotFound."""
        taken = self._take_back(user, lambda login: self._note_taken(login, by), id=id, kinds=kinds)
        if not taken:
            raise NotFound("There is no such token or log-in.")

    def revoke(self, user: str, by: str, kinds: Collection[str] = KINDS, why: str = "") -> int:
        """Take back all of these kinds; returns how many there were.

        All kinds: also browsers in apps whose login has ended by itself are shut out.
        """
        return len(
            self._take_back(user, lambda login: self._note_taken(login, by, why), kinds=kinds)
        )

    def _take_back(
        self,
        user: str,
        write: Callable[[Login], None],
        id: str | None = None,
        kinds: Collection[str] = KINDS,
    ) -> list[Login]:
        taken, keys = self.store.revoke(user, self._clock(), id=id, kinds=kinds)
        for login in taken:
            write(login)
        # After the store: HAProxy's map is restored from it, never the other way round.
        self._shut(*keys)
        return taken

    def _note_taken(self, login: Login, by: str, why: str = "") -> None:
        what = f"token {login.name}" if login.kind == TOKEN else "browser"
        said = (
            what + ("" if by == login.user else f" of {login.user}") + (f": {why}" if why else "")
        )
        self._note(by, f"{login.kind}.revoke", login.id, said)

    def shut_left_over(self) -> None:
        """Shut what a request still made of a login in the moment when it was taken back."""
        if keys := self.store.left_over(self._clock()):
            self._shut(*keys)

    def expire(self) -> None:
        """Forget what is past its time."""
        self.store.expire(self._clock())
