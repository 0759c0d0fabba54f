"""Interface to an OpenID provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from portal.core.auth.oidc import LoginAttempt, LogoutNotice, ProviderAnswer


class IdentityProvider(Protocol):
    """An OpenID provider. Methods raise Unavailable when it does not answer as it should."""

    def authorization_url(self, attempt: LoginAttempt) -> str:
        """Where a browser is sent to log in."""
        ...

    def check_issuer(self, issuer: str) -> None:
        """Check an authorization response's `iss` (RFC 9207); raises Unauthorized."""
        ...

    def redeem(self, code: str, attempt: LoginAttempt) -> ProviderAnswer:
        """Exchange a code for verified claims; raises Unauthorized for an invalid one."""
        ...

    def logout_url(self, id_token: str) -> str:
        """Where a browser is sent to log out there; "" if the provider does not offer it."""
        ...

    def read_logout(self, token: str) -> LogoutNotice:
        """Verify a logout token; raises Unauthorized."""
        ...


class AccountsFile(Protocol):
    """The site's file of accounts by claim."""

    def __call__(self) -> Mapping[str, str] | None:
        """Its current content; None if the site has none. Raises Unavailable."""
        ...
