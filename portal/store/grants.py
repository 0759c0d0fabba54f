"""Apps, tickets and grants in the database: functions that run inside a transaction.

Functions that revoke access store the keys that HAProxy must forget in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.admin.audit import AuditEvent
from portal.core.apps.access import (
    AppState,
    Grant,
    OpenApp,
    RedeemedTicket,
    SessionApps,
    Ticket,
    public_key,
    ssh_key,
)
from portal.core.session.session import LIVE, Session
from portal.store.tables import (
    AppRow,
    GrantRow,
    JournalRow,
    OriginRow,
    PendingRemovalRow,
    SessionRow,
    TicketRow,
)


@dataclass(frozen=True)
class NewTicket:
    """A ticket to be issued, and what to store with it."""

    ticket: Ticket
    event: AuditEvent
    """Stored unless the login already has a ticket to this app."""
    used: datetime | None
    """The session's new time of last use; None: the stored one is recent enough."""


# Reading


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
    db: Database, found: SessionApps, opened: OpenApp, cookie_hashes: Sequence[str]
) -> Grant | None:
    """The grant of the first of these cookies that permits this app to the session's owner."""
    query = select(GrantRow).where(
        col(GrantRow.cookie_hash).in_(cookie_hashes),
        col(GrantRow.label) == opened.label,
        col(GrantRow.session) == opened.session,
        col(GrantRow.app) == opened.app,
        col(GrantRow.user) == found.session.owner,
    )
    grants = {row.cookie_hash: to_grant(row) for row in db.exec(query)} if cookie_hashes else {}
    return next((grants[each] for each in cookie_hashes if each in grants), None)


# Granting


def add_ticket(db: Database, new: NewTicket, most: int) -> None:
    """Store a ticket with its event and the session's use; the app keeps its newest `most`."""
    ticket = new.ticket
    known = _trim_tickets(db, ticket, most - 1)
    db.add(TicketRow(**vars(ticket)))
    if new.used is not None:
        which = col(SessionRow.id) == ticket.session, col(SessionRow.state).in_(LIVE)
        db.exec(update(SessionRow).where(*which).values(last_used=new.used))
    if not any(row.login == ticket.login for row in known):
        db.add(JournalRow(**new.event.model_dump(exclude={"id"})))


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
    """Grant what a ticket permits; None if its app has moved or closed, or has another owner."""
    found = read_session(db, ticket.session)
    opened = found.apps.get(ticket.app) if found else None
    if found is None or opened is None or opened.label != ticket.label:
        return None
    if found.session.owner != ticket.user or found.session.state not in LIVE:
        return None
    origin = db.get(OriginRow, ticket.label)
    mark = origin.mark if origin else ""
    for known_hash in known_hashes:
        known = find_grant(db, found, opened, [known_hash])
        if known is not None and known.login == ticket.login:
            return RedeemedTicket(found, opened, known, mark, new=False)
    scope = (ticket.label, ticket.session, ticket.app, ticket.user, ticket.login)
    grant = Grant(cookie_hash, *scope, created=now)
    dropped = _trim_grants(db, grant, most - 1, now)
    db.add(GrantRow(**vars(grant)))
    return RedeemedTicket(found, opened, grant, mark, new=True, dropped=tuple(dropped))


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
