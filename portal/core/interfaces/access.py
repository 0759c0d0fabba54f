"""TODO."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from portal.core.apps.access import AppState, Grant, OpenApp, OriginEntry, RedeemedTicket, Ticket
from portal.core.apps.origins import KnownOrigins, OriginChoice, OriginRequest


@dataclass(frozen=True)
class Placed:
    """Where an app is after a look for a place."""

    opened: OpenApp | None
    """None where no place was found, or somebody else took it at the same moment."""
    choice: OriginChoice | None = None
    """None when another request was quicker, and nothing was changed."""
    keys: tuple[str, ...] = ()
    """Ways to where it was, which are to be shut."""


class AccessStore(Protocol):
    """Apps that are open, and who may reach them. Every method is one transaction.

    What takes something away returns the keys that HAProxy must forget, and keeps them until
    `are_shut` is told: a crash in between, or an HAProxy that does not answer, forgets none.
    """

    def assign_origin(
        self,
        session: str,
        seen: OpenApp | None,
        seeker: OriginRequest,
        choose: Callable[[KnownOrigins], OriginChoice],
        now: datetime,
    ) -> Placed:
        """Give an app an origin, or another one, by what `choose` says of the places there are.

        Only where the app is still where it was `seen`. Moving drops its tickets and grants.
        Raises Conflict for a session that is over.
        """
        ...

    def save_answer(self, opened: OpenApp, asked: str) -> bool:
        """Keep what the owner answered; False when it is not the answer any more that was seen."""
        ...

    def reopen_app(self, opened: OpenApp) -> None:
        """Its owner has opened again what they had closed."""
        ...

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The apps that administrators' sessions found in each image."""
        ...

    def note_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Remember what an administrator's session found in its image."""
        ...

    def set_app(
        self,
        session: str,
        app: str,
        state: AppState,
        message: str,
        log: str,
        details: str | None = None,
    ) -> None:
        """Note what the runner says of an app; details stay when there are no new ones."""
        ...

    def apps(self, session: str) -> list[OpenApp]:
        """All open apps of a session."""
        ...

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All open apps of these sessions."""
        ...

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app behind an origin."""
        ...

    def abandoned(self) -> list[str]:
        """Sessions that are over and still have apps: the portal ended in between."""
        ...

    def publish_app(self, opened: OpenApp, since: datetime) -> bool:
        """Open an app to everybody; False when it is not at this origin any more."""
        ...

    def add_ticket(self, ticket: Ticket, most: int) -> bool:
        """Remember a one-time ticket by its hash; of an app's tickets the newest `most` stay.

        Returns whether the login had no other ticket to the app.
        """
        ...

    def redeem(
        self, ticket_hash: str, label: str, cookie_hash: str, has: str, now: datetime, most: int
    ) -> RedeemedTicket | None:
        """Exchange a ticket for a grant to what it was made for, and for its session's owner.

        None when it is unknown, spent, expired, or for what is not at this origin (any more).
        `has` is the hash of the browser's cookie, which stays where it is good for the same. Of
        an app's grants the newest `most` stay.
        """
        ...

    def at_origin(self, label: str, cookie_hash: str) -> OriginEntry | None:
        """The app at an origin and what a cookie is good for there; None where nothing is."""
        ...

    def grants(self, session: str | None = None) -> list[Grant]:
        """The grants of one session, or all; only those for what is at their origin now."""
        ...

    def make_private(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Open an app to its owner alone again; returns the keys to shut, whatever was stored."""
        ...

    def close_app(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Shut an app for everybody, its owner included; returns the keys to shut."""
        ...

    def close_session(self, session: str, now: datetime) -> tuple[str, ...]:
        """Forget all apps, tickets and grants of a session; returns the keys to shut."""
        ...

    def pending_removals(self) -> list[str]:
        """The keys that were taken away and that HAProxy may still know."""
        ...

    def removed(self, keys: Collection[str]) -> None:
        """HAProxy has forgotten these keys, and cut who was inside by them."""
        ...
