"""Interfaces to logins, login attempts, accounts and OpenID providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from portal.core.auth.accounts import AccountStatus, Identity
from portal.core.auth.logins import KINDS, FailedAttempts, Login, UserLogins
from portal.core.auth.oidc import (
    AuthorizationResponse,
    LoginAttempt,
    LogoutNotice,
    ProviderAnswer,
)
from portal.core.auth.service_tokens import ServiceToken


class LoginStore(Protocol):
    """Logins and API tokens: server-side, so that each can be revoked at once.

    A revoked login is kept for an hour, so that tickets and grants that a concurrent request still
    derives from it are found (`left_over`). Every method is one transaction.
    """

    def add_login(self, login: Login, most: int) -> bool:
        """Store a login; False if its user already has `most` live ones of this kind."""
        ...

    def login(self, hash: str, now: datetime) -> Login | None:
        """The login with this hash, unless it has expired or was revoked."""
        ...

    def logins(self, user: str, now: datetime) -> list[Login]:
        """All live logins and tokens of a user, newest first."""
        ...

    def present(self, now: datetime) -> list[UserLogins]:
        """All users with a live login or token, by name."""
        ...

    def use_login(self, hash: str, used: datetime, expires: datetime) -> None:
        """Record the use of a login, and its new expiry."""
        ...

    def revoke(
        self, user: str, now: datetime, *, id: str | None = None, kinds: Collection[str] = KINDS
    ) -> tuple[list[Login], list[str]]:
        """Revoke a user's logins (one, or all of these kinds), with their tickets and grants.

        Returns the revoked logins, and the keys to remove from HAProxy. For all kinds, grants of
        logins that have expired since are included.
        """
        ...

    def left_over(self, now: datetime) -> list[str]:
        """Delete tickets and grants of revoked logins; returns the keys to remove from HAProxy."""
        ...

    def provider_logins(self, issuer: str, subject: str, sid: str, now: datetime) -> list[Login]:
        """Live logins that a provider vouched for, of a subject and a session; "" is any."""
        ...

    def is_provider_admin(self, issuer: str, user: str, now: datetime) -> bool:
        """Whether the user has a live login that a provider called an administrator's."""
        ...

    def inside(self, since: datetime, now: datetime) -> set[str]:
        """Users who have used a login since a time, or have a browser in an app."""
        ...

    def password_seen(self, user: str) -> str:
        """Last known status of an account's password: "P" (usable), "L" (locked), else ""."""
        ...

    def note_password(self, user: str, status: str) -> None:
        """Save the status of an account's password."""
        ...

    def expire(self, now: datetime) -> None:
        """Delete logins and tickets that have expired."""
        ...


class ServiceTokenStore(Protocol):
    """Tokens of services. Every method is one transaction."""

    def add(self, token: ServiceToken) -> None:
        """Store a token."""
        ...

    def find(self, hash: str, now: datetime) -> ServiceToken | None:
        """The token with this hash, unless it has expired."""
        ...

    def all(self) -> list[ServiceToken]:
        """All tokens, also expired ones, by name."""
        ...

    def remove(self, id: str) -> ServiceToken | None:
        """Delete a token; None if there is none."""
        ...

    def note_use(self, id: str, user: str, now: datetime, since: datetime) -> bool:
        """Store a use for a user; False if one since `since` is stored already."""
        ...


class AttemptStore(Protocol):
    """Login attempts, counted across all processes. Every method is one transaction."""

    def take(self, key: str, now: int, interval: int, burst: int) -> int:
        """Take one of `burst` attempts; one is regained each `interval`. Times in ms.

        Returns 0, or the time until the next attempt.
        """
        ...

    def give_back(self, key: str, interval: int) -> None:
        """Return the last attempt taken."""
        ...

    def forgive(self, key: str) -> None:
        """Return all attempts."""
        ...

    def knows(self, user: str, network: str) -> bool:
        """Whether this account has logged in from this network."""
        ...

    def remember(self, user: str, network: str, now: int) -> None:
        """Record that this account has logged in from this network."""
        ...

    def refused(self, user: str, network: str, hour: int, names: int) -> FailedAttempts:
        """Count a wrong password; more than `names` names from one network share one count."""
        ...

    def refusals_before(self, hour: int) -> Sequence[FailedAttempts]:
        """The counts of hours before this one."""
        ...

    def drop_refusals(self, done: FailedAttempts) -> None:
        """Delete a count."""
        ...

    def expire(self, now: int, known_before: int) -> None:
        """Delete what has expired; times in ms."""
        ...


class Accounts(Protocol):
    """Accounts on the login node. Methods raise Unavailable when it does not answer."""

    def missing(self, names: Collection[str]) -> set[str]:
        """The accounts of these that do not exist or have no login shell."""
        ...

    def identity(self, user: str) -> Identity | None:
        """The number and the groups of an account; None if it does not exist or has no shell."""
        ...

    def standing(self, user: str) -> AccountStatus:
        """Whether an account may log in now, and the status of its password."""
        ...


class IdentityProvider(Protocol):
    """An OpenID provider. Methods raise Unavailable when it does not answer correctly."""

    def authorization_url(self, attempt: LoginAttempt) -> str:
        """The address to which a browser is redirected for login."""
        ...

    def redeem(self, answer: AuthorizationResponse, attempt: LoginAttempt) -> ProviderAnswer:
        """Check an authorization response and exchange its code for verified claims.

        Raises Unauthorized for another provider's response (RFC 9207), an error, an invalid code.
        """
        ...

    def logout_url(self, id_token: str) -> str:
        """The address for logout at the provider; "" if the provider does not offer it."""
        ...

    def read_logout(self, token: str) -> LogoutNotice:
        """Verify a logout token; raises Unauthorized."""
        ...


class AccountsFile(Protocol):
    """The site's file of accounts by claim."""

    def __call__(self) -> Mapping[str, str] | None:
        """Its current content; None if the site has none. Raises Unavailable."""
        ...
