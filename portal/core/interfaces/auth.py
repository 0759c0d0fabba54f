"""Interfaces to logins, login attempts, accounts and OpenID providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from portal.core.auth.accounts import AccountStatus, Identity
from portal.core.auth.oidc import (
    AuthorizationResponse,
    LoginAttempt,
    LogoutNotice,
    ProviderAnswer,
)


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
