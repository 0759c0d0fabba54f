"""Log-ins of browsers and API tokens, and how often passwords may be tried."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

BROWSER = "browser"
TOKEN = "token"  # noqa: S105
KINDS = (BROWSER, TOKEN)
MARK = "slipway_"
"""Every secret begins so: HAProxy keeps what it knows for ours away from apps."""
SCOPES = ("read", "write", "admin")
"""What a token may do: look, change, and both of it as an administrator where its owner is one."""
PLAIN_SCOPES = ("read", "write")
MAX_NAME = 80
"""Characters of a token's name."""
MAX_TOKENS = 1000
"""Tokens of one person: nobody keeps an eye on more."""


@dataclass(frozen=True)
class Login:
    """A browser's login or an API token; stored by the hash of its secret."""

    hash: str
    id: str
    """Names it towards people and programs; opens nothing."""
    kind: str
    """"browser" or "token"."""
    user: str
    name: str
    scopes: tuple[str, ...]
    created: datetime
    used: datetime
    """When it was last used, to the minute."""
    expires: datetime
    address: str = ""
    """Where it was made from."""

    def allows(self, scope: str) -> bool:
        """Whether it may do that; a browser's login may do all that its person may."""
        return self.kind == BROWSER or scope in self.scopes


@dataclass(frozen=True)
class UserLogins:
    """How somebody is logged in."""

    user: str
    browsers: int
    tokens: int
    used: datetime


@dataclass(frozen=True)
class LoginTerms:
    """How long log-ins last, and how often passwords may be tried."""

    idle: timedelta
    """A browser's login ends when it was not used for so long."""
    life: timedelta
    """A browser's login ends so long after it was made, however much it is used."""
    token_days: int
    """The longest life of a token."""
    per_minute: int
    """Passwords that one address may try in a minute."""
    per_hour: int
    """Passwords that may be tried in an hour for one account from where it never logged in."""


@dataclass(frozen=True)
class FailedAttempts:
    """How often a password was wrong, for one name from one network in one hour."""

    user: str
    network: str
    hour: int
    count: int


def network_of(address: str) -> str:
    """What counts as one place: an IPv4 address, or the /64 that one user of IPv6 has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found.packed, 64), strict=False))
    return str(found)
