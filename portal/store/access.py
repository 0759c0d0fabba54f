"""Opened apps, their origins, tickets and grants in the database; logins are in logins.py.

Functions that revoke access store the keys that HAProxy must forget in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, bindparam, or_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.admin.audit import AuditEvent
from portal.core.apps.access import (
    AppState,
    Grant,
    OpenApp,
    OriginEntry,
    RedeemedTicket,
    RoutedApp,
    SessionApps,
    Ticket,
    public_key,
    ssh_key,
)
from portal.core.apps.origins import (
    KnownOrigins,
    Origin,
    OriginChoice,
    OriginRequest,
    OriginUse,
    port_of,
)
from portal.core.hosts import Removal
from portal.core.session.session import LIVE, Session, State
from portal.errors import Conflict, NotFound
from portal.store.reading import reading, reading_rows
from portal.store.routed_apps import IS_AT_ORIGIN, IS_OF_OWNER, read_routed
from portal.store.tables import (
    AppRow,
    AuditRow,
    EndedAppRow,
    GrantRow,
    ImageAppsRow,
    OriginRow,
    PendingRemovalRow,
    SessionRow,
    TicketRow,
)


@dataclass(frozen=True)
class NewTicket:
    """A ticket to issue, with the audit event and the session's time of use to store with it."""

    ticket: Ticket
    event: AuditEvent
    """Stored unless the login already has a ticket to this app."""
    used: datetime | None
    """The session's new time of last use; None: the stored one is recent enough."""


@dataclass(frozen=True)
class OriginAssignment:
    """The outcome of assigning an origin to an app."""

    opened: OpenApp | None
    """None if a concurrent request took the origin."""
    choice: OriginChoice | None = None
    """None if a concurrent request changed the app first; nothing was stored."""
    revoked: tuple[str, ...] = ()
    """Keys of routes to the app's previous origin, which HAProxy must forget."""


REMEMBERED = timedelta(days=30)
"""How long the address of an ended app leads its owner to the session's page."""


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
        answer: str = "",
    ) -> OriginAssignment:
        """Assign an origin to an app that has none, or another one, as `choose` decides.

        Only if the app still equals `expected` (None: not opened yet). Moving an app revokes its
        tickets and grants. A new app is stored with its owner's `answer`, because the worker may
        start it at once. Raises Conflict for a session that is over.
        """
        app = request.use.app
        try:
            with Database(self._engine) as db:
                require_live(db, session)
                row = db.get(AppRow, (session, app))
                opened = to_app(row) if row else None
                if not _is_same(opened, expected):
                    return OriginAssignment(opened)
                choice = choose(known_origins(db, request))
                if choice.origin is None:
                    if row is not None and choice.port_requested:
                        row.moved = now
                        db.commit()
                    return OriginAssignment(opened, choice)
                revoked: list[str] = []
                if row is None:
                    row = AppRow(
                        session=session, app=app, label="", state=AppState.WANTED, asked=answer
                    )
                    db.add(row)
                elif row.label != choice.origin.label:
                    revoked = close_apps(db, session, [app], now)
                    release_origins(db, [row.label], now)
                row.label, row.moved = choice.origin.label, now if choice.port_requested else None
                save_origin(db, choice.origin)
                db.flush()
                assigned = to_app(row)
                db.commit()
                return OriginAssignment(assigned, choice, tuple(revoked))
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
        """Store the runner's report about an app; None leaves its details unchanged."""
        values = {"state": state, "message": message, "log": log}
        values |= {} if details is None else {"details": details}
        with Database(self._engine) as db:
            self._change(db, session, app, values)
            db.commit()

    def set_starting(self, opened: OpenApp) -> bool:
        """Store that an app is starting; False, without a change, if its answer has changed."""
        return self._change_answered(opened, state=AppState.STARTING, message="", log="")

    def save_answer(self, opened: OpenApp, answer: str) -> bool:
        """Store the owner's answer; False, without a change, unless `opened.asked` is current."""
        return self._change_answered(opened, asked=answer)

    def save_title(self, opened: OpenApp, title: str) -> None:
        """Store the title that its owner gives an app."""
        with Database(self._engine) as db:
            self._change(db, opened.session, opened.app, {"title": title})
            db.commit()

    def _change_answered(self, opened: OpenApp, **values: object) -> bool:
        """Update an app, unless its stored answer differs from `opened.asked`."""
        with Database(self._engine) as db:
            conditions = (*_is_app(opened.session, opened.app), col(AppRow.asked) == opened.asked)
            result = db.exec(update(AppRow).where(*conditions).values(**values))
            db.commit()
            return bool(result.rowcount)

    def reopen_app(self, opened: OpenApp) -> None:
        """Undo close_app: an SSH route to it may exist again. Idempotent."""
        with Database(self._engine) as db:
            self._change(db, opened.session, opened.app, {"shut": False})
            self._keep_key(db, ssh_key(opened.label))
            db.commit()

    def publish_app(self, opened: OpenApp, since: datetime) -> bool:
        """Make an app public; False if it is no longer at this origin."""
        with Database(self._engine) as db:
            conditions = (*_is_app(opened.session, opened.app), col(AppRow.label) == opened.label)
            result = db.exec(update(AppRow).where(*conditions).values(public_since=since))
            self._keep_key(db, public_key(opened.label))
            db.commit()
            return bool(result.rowcount)

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

    def app_states(self, session: str) -> dict[str, AppState]:
        """The states of a session's opened apps."""
        with reading_rows(self._readers) as connection:
            rows = connection.execute(_STATES, {"session": session})
            return {app: AppState(state) for app, state in rows}

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

    # Apps of images

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
        newest `most` tickets. Returns the session with its apps, and whether a ticket was issued.
        Raises NotFound if there is no such session.
        """
        with Database(self._engine) as db:
            session_apps = read_session(db, session)
            if session_apps is None:
                raise NotFound("There is no such session.")
            new = decide(session_apps)
            if new is not None:
                add_ticket(db, new, most)
                db.commit()
            return session_apps, new is not None

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
            session_apps = read_session(db, row.session) if row else None
            opened = session_apps.apps.get(row.app) if session_apps and row else None
            if session_apps is None or opened is None or opened.label != label:
                return None
            return OriginEntry(
                session_apps, opened, find_grant(db, session_apps, opened, cookie_hashes)
            )

    def grants(self, session: str) -> list[Grant]:
        """The grants of a session; only those whose app is still at their origin."""
        query = select(GrantRow).join(AppRow, IS_AT_ORIGIN).join(SessionRow, IS_OF_OWNER)
        with reading(self._readers) as db:
            return [to_grant(row) for row in db.exec(query.where(col(GrantRow.session) == session))]

    def routed_apps(self, labels: Collection[str] | None = None) -> list[RoutedApp]:
        """The apps of running sessions: of all, or of those that have an app with such a label."""
        with reading(self._readers) as db:
            return read_routed(db, labels)

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


def _is_same(opened: OpenApp | None, expected: OpenApp | None) -> bool:
    """Whether an app is at the expected origin, and no port has been requested since."""
    if opened is None or expected is None:
        return opened is expected
    return (opened.label, opened.moved) == (expected.label, expected.moved)


# Reading


_STATES = select(AppRow.app, AppRow.state).where(col(AppRow.session) == bindparam("session"))


def read_apps(db: Database, sessions: Collection[str]) -> list[OpenApp]:
    """All opened apps of these sessions."""
    rows = db.exec(select(AppRow).where(col(AppRow.session).in_(sessions)))
    apps = [to_app(row) for row in rows]
    pending = select(PendingRemovalRow.session, PendingRemovalRow.app)
    still_open = set(db.exec(pending.where(col(PendingRemovalRow.session).in_(sessions))))
    return [
        replace(app, still_open=True) if (app.session, app.app) in still_open else app
        for app in apps
    ]


def read_session(db: Database, session: str) -> SessionApps | None:
    """A session with its apps."""
    row = db.get(SessionRow, session)
    if row is None:
        return None
    value = Session.model_validate(row, from_attributes=True)
    return SessionApps(value, {app.app: app for app in read_apps(db, [session])})


def to_app(row: AppRow) -> OpenApp:
    """The row as a value."""
    fields = row.model_dump(exclude={"state", "shut"})
    return OpenApp(**fields, state=AppState(row.state), closed=row.shut)


def to_grant(row: GrantRow) -> Grant:
    """The row as a value."""
    return Grant(**row.model_dump())


def find_grant(
    db: Database, session_apps: SessionApps, opened: OpenApp, cookie_hashes: Sequence[str]
) -> Grant | None:
    """The grant of the first of these cookies that permits this app to the session's owner."""
    query = select(GrantRow).where(
        col(GrantRow.cookie_hash).in_(cookie_hashes),
        col(GrantRow.label) == opened.label,
        col(GrantRow.session) == opened.session,
        col(GrantRow.app) == opened.app,
        col(GrantRow.user) == session_apps.session.owner,
    )
    grants = {row.cookie_hash: to_grant(row) for row in db.exec(query)} if cookie_hashes else {}
    return next(
        (grants[cookie_hash] for cookie_hash in cookie_hashes if cookie_hash in grants), None
    )


# Granting


def add_ticket(db: Database, new: NewTicket, most: int) -> None:
    """Store a ticket with its event and the session's use; the app keeps its newest `most`."""
    ticket = new.ticket
    tickets = _trim_tickets(db, ticket, most - 1)
    db.add(TicketRow(**vars(ticket)))
    if new.used is not None:
        conditions = col(SessionRow.id) == ticket.session, col(SessionRow.state).in_(LIVE)
        db.exec(update(SessionRow).where(*conditions).values(last_used=new.used))
    if not any(row.login == ticket.login for row in tickets):
        db.add(AuditRow(**new.event.model_dump(exclude={"id"})))


def take_ticket(db: Database, ticket_hash: str, label: str, now: datetime) -> Ticket | None:
    """Remove and return a ticket that is valid at this origin; None if there is none."""
    row = db.get(TicketRow, ticket_hash)
    if row is None or row.label != label or row.expires < now:
        return None
    ticket = Ticket(**row.model_dump())
    # The request that deletes the row gets the ticket; a concurrent one deletes nothing.
    taken = db.exec(delete(TicketRow).where(col(TicketRow.hash) == ticket_hash))
    return ticket if taken.rowcount else None


def admit(
    db: Database,
    ticket: Ticket,
    cookie_hash: str,
    known_hashes: Sequence[str],
    now: datetime,
    most: int,
) -> RedeemedTicket | None:
    """Exchange a ticket for a grant; None if its app has moved or closed, or has another owner."""
    session_apps = read_session(db, ticket.session)
    opened = session_apps.apps.get(ticket.app) if session_apps else None
    if session_apps is None or opened is None or opened.label != ticket.label:
        return None
    if session_apps.session.owner != ticket.user or session_apps.session.state not in LIVE:
        return None
    origin = db.get(OriginRow, ticket.label)
    mark = origin.mark if origin else ""
    for known_hash in known_hashes:
        grant = find_grant(db, session_apps, opened, [known_hash])
        if grant is not None and grant.login == ticket.login:
            return RedeemedTicket(session_apps, opened, grant, mark, new=False)
    scope = (ticket.label, ticket.session, ticket.app, ticket.user, ticket.login)
    new_grant = Grant(cookie_hash, *scope, created=now)
    dropped = _trim_grants(db, new_grant, most - 1, now)
    db.add(GrantRow(**vars(new_grant)))
    return RedeemedTicket(session_apps, opened, new_grant, mark, new=True, dropped=tuple(dropped))


def _trim_tickets(db: Database, ticket: Ticket, most: int) -> Sequence[TicketRow]:
    """Delete all but the newest `most` tickets of an app; returns those."""
    query = select(TicketRow).where(
        col(TicketRow.session) == ticket.session, col(TicketRow.app) == ticket.app
    )
    rows = list(db.exec(query.order_by(col(TicketRow.expires).desc())))
    for row in rows[most:]:
        db.delete(row)
    db.flush()
    return rows[:most]


def _trim_grants(db: Database, grant: Grant, most: int, now: datetime) -> list[str]:
    """Delete all but the newest `most` grants of an app; returns the keys of the others."""
    query = select(GrantRow).where(
        col(GrantRow.session) == grant.session, col(GrantRow.app) == grant.app
    )
    rows = list(db.exec(query.order_by(col(GrantRow.created).desc())))
    return drop_grants(db, rows[most:], now)


# Revoking


def close_apps(db: Database, session: str, apps: Collection[str], now: datetime) -> list[str]:
    """Delete the tickets and grants of these apps; returns all keys that lead to them."""
    keys = []
    for app in apps:
        drop_tickets(db, session, app)
        query = select(GrantRow).where(col(GrantRow.session) == session, col(GrantRow.app) == app)
        keys += drop_grants(db, list(db.exec(query)), now)
        keys += drop_standing_keys(db, session, app, now)
    return keys


def drop_tickets(db: Database, session: str, app: str) -> None:
    """Delete the tickets of an app."""
    db.exec(delete(TicketRow).where(col(TicketRow.session) == session, col(TicketRow.app) == app))


def drop_grants(db: Database, rows: Sequence[GrantRow], now: datetime) -> list[str]:
    """Delete grants; returns their keys."""
    keys = []
    for row in rows:
        key = to_grant(row).key
        _remove_later(db, [key], row.session, row.app, now)
        keys.append(key)
        db.delete(row)
    db.flush()
    return keys


def drop_standing_keys(db: Database, session: str, app: str, now: datetime) -> list[str]:
    """Revoke an app's keys that require no cookie; returns them."""
    row = db.get(AppRow, (session, app))
    if row is None:
        return []
    keys = [public_key(row.label), ssh_key(row.label)]
    _remove_later(db, keys, session, app, now)
    return keys


def _remove_later(
    db: Database, keys: Collection[str], session: str, app: str, now: datetime
) -> None:
    for key in keys:
        db.merge(PendingRemovalRow(key=key, session=session, app=app, since=now))


# Origins


def require_live(db: Database, session: str) -> None:
    """Raise Conflict for a session that is over or ending, in which nothing may be opened."""
    state = db.exec(select(SessionRow.state).where(col(SessionRow.id) == session)).first()
    if state not in LIVE - {State.ENDING}:
        raise Conflict("This session is over. Launch it again to use its apps.")


def known_origins(db: Database, request: OriginRequest) -> KnownOrigins:
    """The labels in use, all ports ever used, and the names that this app has had."""
    use = request.use
    rows = db.exec(
        select(OriginRow).where(
            or_(
                col(OriginRow.is_port),
                (col(OriginRow.owner) == use.owner)
                & (col(OriginRow.environment) == use.environment)
                & (col(OriginRow.version) == use.version)
                & (col(OriginRow.app) == use.app),
            )
        )
    )
    taken = set(db.exec(select(AppRow.label)))
    # A label whose old route is not removed yet would still lead to the previous app.
    taken |= {key.partition(".")[0] for key in db.exec(select(PendingRemovalRow.key))}
    return KnownOrigins(taken, {row.label: _origin(row) for row in rows})


def save_origin(db: Database, origin: Origin) -> None:
    """Store an origin that may be used again: a port, or a kept name."""
    is_port = port_of(origin.label) is not None
    if is_port or origin.kept:
        fields = {**vars(origin), **vars(origin.use)}
        fields.pop("use")
        db.merge(OriginRow(is_port=is_port, **fields))


def release_origins(db: Database, labels: Collection[str], now: datetime) -> None:
    """Record the end of these origins' current use."""
    db.exec(update(OriginRow).where(col(OriginRow.label).in_(labels)).values(used=now))


def remember_ended(db: Database, apps: Collection[AppRow], now: datetime) -> None:
    """Store the last apps of these origins; delete those older than REMEMBERED."""
    db.exec(delete(EndedAppRow).where(col(EndedAppRow.ended) < now - REMEMBERED))
    for row in apps:
        db.merge(EndedAppRow(label=row.label, session=row.session, app=row.app, ended=now))


def _origin(row: OriginRow) -> Origin:
    use = OriginUse(row.owner, row.environment, row.version, row.app)
    return Origin(row.label, use, row.kept, row.shared, row.mark, row.used)
