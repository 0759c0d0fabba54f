"""Log-ins of browsers and API tokens, and how often passwords may be tried."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

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
class Presence:
    """How somebody is logged in."""

    user: str
    browsers: int
    tokens: int
    used: datetime


@dataclass(frozen=True)
class Terms:
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


class LoginStore(Protocol):
    """Who is logged in: server-side, so that a login can be taken back at once.

    What was taken back is kept for an hour, so that whatever a request of that very moment still
    makes out of it is found (`left_over`).
    """

    def add_login(self, login: Login, most: int) -> bool:
        """Remember a login; False when its user has `most` live ones of this kind already."""
        ...

    def login(self, hash: str, now: datetime) -> Login | None:
        """The login with this hash, unless it has expired or was taken back."""
        ...

    def logins(self, user: str, now: datetime) -> list[Login]:
        """All of somebody's live logins and tokens, newest first."""
        ...

    def present(self, now: datetime) -> list[Presence]:
        """Everybody who has a live login or token, by name."""
        ...

    def use_login(self, hash: str, used: datetime, expires: datetime) -> None:
        """Note the use of a login, and until when it lasts now."""
        ...

    def revoke(
        self, user: str, now: datetime, *, id: str | None = None, kinds: Collection[str] = KINDS
    ) -> tuple[list[Login], list[str]]:
        """Take back somebody's logins (one, or all of these kinds), their tickets and grants.

        One transaction; returns what was taken back, and the keys that HAProxy must forget. All
        kinds: the grants of logins that have expired since are among them.
        """
        ...

    def left_over(self, now: datetime) -> list[str]:
        """Forget tickets and grants of logins that were taken back; returns the keys to shut."""
        ...

    def inside(self, since: datetime, now: datetime) -> set[str]:
        """Who has used a login since then, or has a browser in an app."""
        ...

    def password_seen(self, user: str) -> str:
        """What was last seen of an account's password: "P" (usable), "L" (locked) or ""."""
        ...

    def note_password(self, user: str, status: str) -> None:
        """Keep what was seen of an account's password."""
        ...

    def expire(self, now: datetime) -> None:
        """Forget logins and tickets that are past their time."""
        ...


@dataclass(frozen=True)
class Refusals:
    """How often a password was wrong, for one name from one network in one hour."""

    user: str
    network: str
    hour: int
    count: int


class AttemptStore(Protocol):
    """How often passwords were tried, for all processes. Every method is one transaction."""

    def take(self, key: str, now: int, interval: int, burst: int) -> int:
        """Use up one of `burst` tries, of which one comes back each `interval`; times in ms.

        Returns 0, or for how long there is none.
        """
        ...

    def give_back(self, key: str, interval: int) -> None:
        """The try that was taken last does not count."""
        ...

    def forgive(self, key: str) -> None:
        """All tries are there again."""
        ...

    def knows(self, user: str, network: str) -> bool:
        """Whether this account has logged in from this network."""
        ...

    def remember(self, user: str, network: str, now: int) -> None:
        """This account has logged in from this network."""
        ...

    def refused(self, user: str, network: str, hour: int, names: int) -> Refusals:
        """Count a wrong password; beyond so many names from one network they share one count."""
        ...

    def refusals_before(self, hour: int) -> Sequence[Refusals]:
        """The counts of hours that are over."""
        ...

    def drop_refusals(self, done: Refusals) -> None:
        """Forget a count."""
        ...

    def expire(self, now: int, known_before: int) -> None:
        """Forget what does not matter any more."""
        ...


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
