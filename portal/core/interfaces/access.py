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
from portal.core.hosts import Removal


@dataclass(frozen=True)
class OriginAssignment:
    """The result of assigning an origin to an app."""

    opened: OpenApp | None
    """None if a concurrent request took the origin."""
    choice: OriginChoice | None = None
    """None if a concurrent request changed the app first; nothing was stored."""
    revoked: tuple[str, ...] = ()
    """Keys of routes to the app's previous origin, which HAProxy must forget."""


@dataclass(frozen=True)
class NewTicket:
    """A ticket to be issued, with its audit event and time of use."""

    ticket: Ticket
    event: AuditEvent
    """Stored unless the login already has a ticket to this app."""
    used: datetime | None
    """The session's new time of last use; None: the stored one is recent enough."""


class AccessStore(Protocol):
    """Opened apps and the access to them. Every method is one transaction.

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

        Only if the app still equals `expected` (None: not opened yet). Moving an app revokes its
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
        """Store what the runner reports about an app; None leaves its details unchanged."""
        ...

    def set_starting(self, opened: OpenApp) -> bool:
        """Store that an app is starting; False, without a change, if its answer has changed."""
        ...

    def save_answer(self, opened: OpenApp, asked: str) -> bool:
        """Store the owner's answer; False, without a change, unless `opened.asked` is current."""
        ...

    def save_title(self, opened: OpenApp, title: str) -> None:
        """Store the title that its owner gives an app."""
        ...

    def reopen_app(self, opened: OpenApp) -> None:
        """Undo close_app: an SSH route to it may exist again. Idempotent."""
        ...

    def publish_app(self, opened: OpenApp, since: datetime) -> bool:
        """Make an app public; False if it is no longer at this origin."""
        ...

    def apps(self, session: str) -> list[OpenApp]:
        """All opened apps of a session."""
        ...

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All opened apps of these sessions."""
        ...

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app at an origin."""
        ...

    def ended_at(self, label: str) -> str | None:
        """The session whose app was last at an origin, for a month; None if unknown."""
        ...

    def abandoned(self) -> list[str]:
        """Ended sessions that still have apps, because the portal crashed in between."""
        ...

    # What images offer

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The apps that administrators' sessions found in images, by environment and version."""
        ...

    def save_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Store the apps that an administrator's session found in its image."""
        ...

    # Tickets and grants

    def issue_ticket(
        self, session: str, decide: Callable[[SessionApps], NewTicket | None], most: int
    ) -> tuple[SessionApps, bool]:
        """Read a session with its apps, and issue the ticket that `decide` returns for them.

        `decide` runs inside the transaction: it must not wait or use a store. An app keeps its
        newest `most` tickets. Returns what was read, and whether a ticket was issued. Raises
        NotFound if there is no such session.
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

        None if it is unknown, spent, expired, or its app is not (or no longer) at this origin.
        If the browser's cookies (`known_hashes`) include an equivalent grant, that one is kept;
        otherwise `cookie_hash` gets a grant. An app keeps its newest `most` grants.
        """
        ...

    def at_origin(self, label: str, cookie_hashes: Sequence[str]) -> OriginEntry | None:
        """The app at an origin, and the grant of the first cookie that is valid there.

        None if there is no app.
        """
        ...

    def grants(self, session: str | None = None) -> list[Grant]:
        """The grants of one session, or all; only those whose app is still at their origin."""
        ...

    # Revoking access

    def make_private(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Undo publish_app; returns the keys to remove, even if the app was not public."""
        ...

    def close_app(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Revoke all access to an app, its owner's included; returns the keys to remove."""
        ...

    def close_session(self, session: str, now: datetime) -> tuple[str, ...]:
        """Delete all apps, tickets and grants of a session; returns the keys to remove."""
        ...

    def pending_removals(self) -> list[Removal]:
        """Revoked keys that HAProxy may still have."""
        ...

    def removed(self, keys: Collection[str]) -> None:
        """Confirm that HAProxy has removed these keys and cut the connections made with them."""
        ...
