"""TODO."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from portal.core.auth.accounts import AccountStatus
from portal.core.auth.logins import KINDS, FailedAttempts, Login, UserLogins


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

    def present(self, now: datetime) -> list[UserLogins]:
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

    def refused(self, user: str, network: str, hour: int, names: int) -> FailedAttempts:
        """Count a wrong password; beyond so many names from one network they share one count."""
        ...

    def refusals_before(self, hour: int) -> Sequence[FailedAttempts]:
        """The counts of hours that are over."""
        ...

    def drop_refusals(self, done: FailedAttempts) -> None:
        """Forget a count."""
        ...

    def expire(self, now: int, known_before: int) -> None:
        """Forget what does not matter any more."""
        ...


class Accounts(Protocol):
    """The login node's word about accounts. Raises Unavailable where it has none."""

    def missing(self, names: Collection[str]) -> set[str]:
        """Those of these accounts that do not exist or have no shell to log in with."""
        ...

    def standing(self, user: str) -> AccountStatus:
        """Whether an account is let in right now, and what is seen of its password."""
        ...
