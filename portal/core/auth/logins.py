"""Browser logins and API tokens, and the rate limits for passwords."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, get_args

BROWSER = "browser"
TOKEN = "token"  # noqa: S105
KINDS = (BROWSER, TOKEN)
PASSWORD, OIDC = "password", "oidc"
"""Methods by which a browser logged in."""
MARK = "slipway_"
"""Prefix of every secret, by which HAProxy removes secrets from requests to apps."""
Scope = Literal["read", "write", "files:read", "files:write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""Permissions of a token: read, change, the same for files, and administration if its owner is an
administrator."""
PLAIN_SCOPES = ("read", "write", "files:read", "files:write")
Purpose = Literal["jupyterhub"]
HUB: Purpose = "jupyterhub"
"""Purpose of a token that a program stores, which has at most one per user."""
MAX_NAME = 80
"""Characters of a token's name."""
MAX_TOKENS = 1000
"""Tokens of one user; users could not manage more."""


@dataclass(frozen=True)
class Proof:
    """Result of an authentication, with the provider's data after OpenID Connect."""

    method: str = PASSWORD
    issuer: str = ""
    subject: str = ""
    """The provider's identifier of the user (`sub`)."""
    sid: str = ""
    """The provider's identifier of its own session."""
    admin: bool = False
    """Whether the provider's groups make the user an administrator."""
    id_token: str = field(default="", repr=False)
    """Sent to the provider as `id_token_hint` at logout."""


BY_PASSWORD = Proof()


@dataclass(frozen=True)
class Login:
    """A browser's login or an API token; stored by the hash of its secret."""

    hash: str
    id: str
    """Public identifier; not a secret."""
    kind: str
    """"browser" or "token"."""
    user: str
    name: str
    scopes: tuple[str, ...]
    created: datetime
    used: datetime
    """When it was last used, to the minute; polls of open pages do not count."""
    expires: datetime
    address: str = ""
    """Client address at creation."""
    method: str = ""
    issuer: str = ""
    subject: str = ""
    sid: str = ""
    admin: bool = False
    id_token: str = field(default="", repr=False)
    """As in Proof; empty for tokens."""
    purpose: Purpose | Literal[""] = ""
    """Purpose of a token; "" for tokens that their owners store themselves."""
    seen: datetime | None = None
    """When a visible page last polled with it, to the minute; None if its last use is later."""

    def allows(self, scope: str) -> bool:
        """Whether it has this scope; a browser's login has all of its user's permissions."""
        return self.kind == BROWSER or scope in self.scopes


@dataclass(frozen=True)
class UserLogins:
    """A user's live logins and tokens, counted."""

    user: str
    browsers: int
    tokens: int
    used: datetime


@dataclass(frozen=True)
class LoginTerms:
    """Lifetimes of logins, and the rate limits for passwords."""

    idle: timedelta
    """A browser's login expires after this time without use."""
    life: timedelta
    """A browser's login expires this long after its creation, even if it is in use."""
    token_days: int
    """Maximum lifetime of a token."""
    per_hour: int
    """Wrong passwords per hour for one account from networks where it has never logged in."""


@dataclass(frozen=True)
class FailedAttempts:
    """Number of wrong passwords for one user name from one network in one hour."""

    user: str
    network: str
    hour: int
    count: int


def network_of(address: str) -> str:
    """The network that counts as one client: an IPv4 address, or an IPv6 /64."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip.packed, 64), strict=False))
    return str(ip)
