"""Interface to the store of apps, tickets and grants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from portal.core.admin.audit import AuditEvent
from portal.core.apps.access import (
    AppState,
    Grant,
    OpenApp,
    OriginEntry,
    RedeemedTicket,
    SessionApps,
    Ticket,
)
from portal.core.apps.origins import KnownOrigins, OriginChoice, OriginRequest


@dataclass(frozen=True)
class OriginAssignment:
    """The outcome of assigning an origin to an app."""

    opened: OpenApp | None
    """None where none could be assigned, since another request took it at the same moment."""
    choice: OriginChoice | None = None
    """None when another request was quicker, and nothing was changed."""
    revoked: tuple[str, ...] = ()
    """Keys of routes to the app's previous origin, which HAProxy must forget."""


@dataclass(frozen=True)
class NewTicket:
    """A ticket to be issued, and what is stored with it."""

    ticket: Ticket
    event: AuditEvent
    """Written unless the login has a ticket to this app already."""
    used: datetime | None
    """The session's new time of last use; None: the stored one is recent enough."""


class AccessStore(Protocol):
    """Opened apps, and who may reach them. Every method is one transaction.

    Methods that revoke access return the keys that HAProxy must forget, and keep them until
    `removed` confirms it, so that neither a crash nor an HAProxy that does not answer loses any.
    """

    # Apps and their origins

    def assign_origin(
        self,
        session: str,
        expected: OpenApp | None,
        request: OriginRequest,
        choose: Callable[[KnownOrigins], OriginChoice],
        now: datetime,
        asked: str = "",
    ) -> OriginAssignment:
        """Assign an origin to an app that has none, or another one, as `choose` decides.

        Only if the app is still as `expected` (None: not opened yet). Moving an app revokes its
        tickets and grants. A new app is stored with `asked`, its owner's answer, because the worker
        may start it at once. Raises Conflict for a session that is over.
        """
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
        """Store what the runner reports of an app; None leaves its details as they are."""
        ...

    def set_starting(self, opened: OpenApp) -> bool:
        """Store that an app starts; False, and nothing is stored, if its answer has changed."""
        ...

    def save_answer(self, opened: OpenApp, asked: str) -> bool:
        """Store the owner's answer; False, and nothing is stored, if it is not `opened.asked`."""
        ...

    def reopen_app(self, opened: OpenApp) -> None:
        """Undo close_app: an SSH route to it may exist again. Idempotent."""
        ...

    def publish_app(self, opened: OpenApp, since: datetime) -> bool:
        """Make an app public; False when it is not at this origin any more."""
        ...

    def apps(self, session: str) -> list[OpenApp]:
        """All opened apps of a session."""
        ...

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All opened apps of these sessions."""
        ...

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app that has an origin."""
        ...

    def abandoned(self) -> list[str]:
        """Sessions that are over and still have apps, since the portal crashed in between."""
        ...

    # What images offer

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """By environment and version: the apps that administrators' sessions found in an image."""
        ...

    def save_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Store the apps that an administrator's session found in its image."""
        ...

    # Tickets and grants

    def issue_ticket(
        self, session: str, decide: Callable[[SessionApps], NewTicket | None], most: int
    ) -> tuple[SessionApps, bool]:
        """Read a session with its apps, and issue the ticket that `decide` makes of them.

        `decide` runs inside the transaction: it must not wait, nor use a store. Of an app's
        tickets the newest `most` stay. Returns what was read, and whether a ticket was issued.
        Raises NotFound when there is no such session.
        """
        ...

    def redeem(
        self,
        ticket_hash: str,
        label: str,
        cookie_hash: str,
        known_hashes: Sequence[str],
        now: datetime,
        most: int,
    ) -> RedeemedTicket | None:
        """Exchange a ticket for a grant to its app, for its session's owner.

        None when it is unknown, spent, expired, or for an app that is not at this origin (any
        more). A browser whose cookies (`known_hashes`) include one that permits the same keeps
        it; else `cookie_hash` is granted. Of an app's grants the newest `most` stay.
        """
        ...

    def at_origin(self, label: str, cookie_hashes: Sequence[str]) -> OriginEntry | None:
        """The app at an origin, and the grant of the first of these cookies that is valid there.

        None where there is no app.
        """
        ...

    def grants(self, session: str | None = None) -> list[Grant]:
        """The grants of one session, or all; only those for the app that is at their origin now."""
        ...

    # Revoking access

    def make_private(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Undo publish_app; returns the keys to remove, whether or not the app was public."""
        ...

    def close_app(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Revoke all access to an app, its owner's included; returns the keys to remove."""
        ...

    def close_session(self, session: str, now: datetime) -> tuple[str, ...]:
        """Delete all apps, tickets and grants of a session; returns the keys to remove."""
        ...

    def pending_removals(self) -> list[str]:
        """Keys that were revoked and that HAProxy may still have."""
        ...

    def removed(self, keys: Collection[str]) -> None:
        """Confirm that HAProxy has removed these keys and cut the connections made with them."""
        ...
