"""The store of apps, tickets and grants; logins are in logins.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.apps.access import (
    AppState,
    Grant,
    OpenApp,
    OriginEntry,
    RedeemedTicket,
    SessionApps,
    public_key,
    ssh_key,
)
from portal.core.apps.origins import KnownOrigins, OriginChoice, OriginRequest
from portal.core.hosts import Removal
from portal.core.session.session import LIVE
from portal.errors import NotFound
from portal.store.grants import (
    NewTicket,
    add_ticket,
    admit,
    close_apps,
    drop_standing_keys,
    drop_tickets,
    find_grant,
    read_apps,
    read_session,
    take_ticket,
    to_app,
    to_grant,
)
from portal.store.origins import (
    OriginAssignment,
    known_origins,
    release_origins,
    remember_ended,
    require_live,
    save_origin,
)
from portal.store.reading import reading
from portal.store.tables import (
    AppRow,
    EndedAppRow,
    GrantRow,
    ImageAppsRow,
    PendingRemovalRow,
    SessionRow,
    TicketRow,
)


class AccessStore:
    """Opened apps and the access to them. Every method is one transaction.

    Methods that revoke access return the keys that HAProxy must forget, and keep them until
    `removed` confirms it, so that neither a crash nor an HAProxy that does not answer loses any.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

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
        app = request.use.app
        try:
            with Database(self._engine) as db:
                require_live(db, session)
                row = db.get(AppRow, (session, app))
                known = to_app(row) if row else None
                if not _is_same(known, expected):
                    return OriginAssignment(known)
                choice = choose(known_origins(db, request))
                if choice.origin is None:
                    if row is not None and choice.port_requested:
                        row.moved = now
                        db.commit()
                    return OriginAssignment(known, choice)
                revoked: list[str] = []
                if row is None:
                    row = AppRow(
                        session=session, app=app, label="", state=AppState.WANTED, asked=asked
                    )
                    db.add(row)
                elif row.label != choice.origin.label:
                    revoked = close_apps(db, session, [app], now)
                    release_origins(db, [row.label], now)
                row.label, row.moved = choice.origin.label, now if choice.port_requested else None
                save_origin(db, choice.origin)
                db.flush()
                opened = to_app(row)
                db.commit()
                return OriginAssignment(opened, choice, tuple(revoked))
        except IntegrityError:  # a concurrent transaction has given the label to another app
            return OriginAssignment(None)

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
        values = {"state": state, "message": message, "log": log}
        values |= {} if details is None else {"details": details}
        with Database(self._engine) as db:
            self._change(db, session, app, values)
            db.commit()

    def set_starting(self, opened: OpenApp) -> bool:
        """Store that an app is starting; False, without a change, if its answer has changed."""
        return self._change_answered(opened, state=AppState.STARTING, message="", log="")

    def save_answer(self, opened: OpenApp, asked: str) -> bool:
        """Store the owner's answer; False, without a change, unless `opened.asked` is current."""
        return self._change_answered(opened, asked=asked)

    def save_title(self, opened: OpenApp, title: str) -> None:
        """Store the title that its owner gives an app."""
        with Database(self._engine) as db:
            self._change(db, opened.session, opened.app, {"title": title})
            db.commit()

    def _change_answered(self, opened: OpenApp, **values: object) -> bool:
        """Update an app if its answer is still the one that was read."""
        with Database(self._engine) as db:
            where = (*_is_app(opened.session, opened.app), col(AppRow.asked) == opened.asked)
            done = db.exec(update(AppRow).where(*where).values(**values))
            db.commit()
            return bool(done.rowcount)

    def reopen_app(self, opened: OpenApp) -> None:
        """Undo close_app: an SSH route to it may exist again. Idempotent."""
        with Database(self._engine) as db:
            self._change(db, opened.session, opened.app, {"shut": False})
            self._keep_key(db, ssh_key(opened.label))
            db.commit()

    def publish_app(self, opened: OpenApp, since: datetime) -> bool:
        """Make an app public; False if it is no longer at this origin."""
        with Database(self._engine) as db:
            where = (*_is_app(opened.session, opened.app), col(AppRow.label) == opened.label)
            done = db.exec(update(AppRow).where(*where).values(public_since=since))
            self._keep_key(db, public_key(opened.label))
            db.commit()
            return bool(done.rowcount)

    @staticmethod
    def _change(db: Database, session: str, app: str, values: Mapping[str, object]) -> None:
        db.exec(update(AppRow).where(*_is_app(session, app)).values(**values))

    @staticmethod
    def _keep_key(db: Database, key: str) -> None:
        db.exec(delete(PendingRemovalRow).where(col(PendingRemovalRow.key) == key))

    def apps(self, session: str) -> list[OpenApp]:
        """All opened apps of a session."""
        return self.apps_of([session])

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All opened apps of these sessions."""
        with reading(self._readers) as db:
            return read_apps(db, sessions)

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app at an origin."""
        with reading(self._readers) as db:
            row = db.exec(select(AppRow).where(col(AppRow.label) == label)).first()
            return to_app(row) if row else None

    def ended_at(self, label: str) -> str | None:
        """The session whose app was last at an origin, for a month; None if unknown."""
        with reading(self._readers) as db:
            row = db.get(EndedAppRow, label)
            return row.session if row else None

    def abandoned(self) -> list[str]:
        """Ended sessions that still have apps, because the portal crashed in between."""
        live = select(SessionRow.id).where(col(SessionRow.state).in_(LIVE))
        with reading(self._readers) as db:
            query = select(AppRow.session).where(col(AppRow.session).not_in(live))
            return list(db.exec(query.distinct()))

    # What images offer

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The apps that administrators' sessions found in images, by environment and version."""
        with reading(self._readers) as db:
            rows = db.exec(select(ImageAppsRow))
            return {(row.environment, row.version): row.apps for row in rows}

    def save_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Store the apps that an administrator's session found in its image."""
        with Database(self._engine) as db:
            db.merge(ImageAppsRow(environment=environment, version=version, apps=tuple(apps)))
            db.commit()

    # Tickets and grants

    def issue_ticket(
        self, session: str, decide: Callable[[SessionApps], NewTicket | None], most: int
    ) -> tuple[SessionApps, bool]:
        """Read a session with its apps, and issue the ticket that `decide` returns for them.

        `decide` runs inside the transaction: it must not wait or use a store. An app keeps its
        newest `most` tickets. Returns what was read, and whether a ticket was issued. Raises
        NotFound if there is no such session.
        """
        with Database(self._engine) as db:
            found = read_session(db, session)
            if found is None:
                raise NotFound("There is no such session.")
            new = decide(found)
            if new is not None:
                add_ticket(db, new, most)
                db.commit()
            return found, new is not None

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
        with Database(self._engine) as db:
            ticket = take_ticket(db, ticket_hash, label, now)
            if ticket is None:
                return None
            redeemed = admit(db, ticket, cookie_hash, known_hashes, now, most)
            db.commit()
            return redeemed

    def at_origin(self, label: str, cookie_hashes: Sequence[str]) -> OriginEntry | None:
        """The app at an origin, and the grant of the first cookie that is valid there.

        None if there is no app.
        """
        with reading(self._readers) as db:
            row = db.exec(select(AppRow).where(col(AppRow.label) == label)).first()
            found = read_session(db, row.session) if row else None
            opened = found.apps.get(row.app) if found and row else None
            if found is None or opened is None or opened.label != label:
                return None
            return OriginEntry(found, opened, find_grant(db, found, opened, cookie_hashes))

    def grants(self, session: str | None = None) -> list[Grant]:
        """The grants of one session, or all; only those whose app is still at their origin."""
        query = select(GrantRow).join(
            AppRow,
            (col(AppRow.session) == GrantRow.session)
            & (col(AppRow.app) == GrantRow.app)
            & (col(AppRow.label) == GrantRow.label),
        )
        query = query.join(
            SessionRow,
            (col(SessionRow.id) == GrantRow.session) & (col(SessionRow.owner) == GrantRow.user),
        )
        if session is not None:
            query = query.where(col(GrantRow.session) == session)
        with reading(self._readers) as db:
            return [to_grant(row) for row in db.exec(query)]

    # Revoking access

    def make_private(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Undo publish_app; returns the keys to remove, even if the app was not public."""
        with Database(self._engine) as db:
            keys = drop_standing_keys(db, session, app, now)
            drop_tickets(db, session, app)
            self._change(db, session, app, {"public_since": None})
            db.commit()
            return tuple(keys)

    def close_app(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Revoke all access to an app, its owner's included; returns the keys to remove."""
        with Database(self._engine) as db:
            keys = close_apps(db, session, [app], now)
            self._change(db, session, app, {"public_since": None, "shut": True})
            db.commit()
            return tuple(keys)

    def close_session(self, session: str, now: datetime) -> tuple[str, ...]:
        """Delete all apps, tickets and grants of a session; returns the keys to remove."""
        with Database(self._engine) as db:
            rows = list(db.exec(select(AppRow).where(col(AppRow.session) == session)))
            keys = close_apps(db, session, [row.app for row in rows], now)
            release_origins(db, [row.label for row in rows], now)
            remember_ended(db, rows, now)
            db.exec(delete(TicketRow).where(col(TicketRow.session) == session))
            db.exec(delete(AppRow).where(col(AppRow.session) == session))
            db.commit()
            return tuple(keys)

    def pending_removals(self) -> list[Removal]:
        """Revoked keys that HAProxy may still have."""
        with reading(self._readers) as db:
            rows = db.exec(select(PendingRemovalRow.key, PendingRemovalRow.since))
            return [Removal(key, since) for key, since in rows]

    def removed(self, keys: Collection[str]) -> None:
        """Confirm that HAProxy has removed these keys and cut the connections made with them."""
        if not keys:
            return
        with Database(self._engine) as db:
            db.exec(delete(PendingRemovalRow).where(col(PendingRemovalRow.key).in_(keys)))
            db.commit()


def _is_app(session: str, app: str) -> tuple[Any, Any]:
    return col(AppRow.session) == session, col(AppRow.app) == app


def _is_same(known: OpenApp | None, expected: OpenApp | None) -> bool:
    """Whether an app is at the expected origin, and no port has been requested since."""
    if known is None or expected is None:
        return known is expected
    return (known.label, known.moved) == (expected.label, expected.moved)
