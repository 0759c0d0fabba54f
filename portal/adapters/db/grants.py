"""Tickets and grants as parts of a transaction: what HAProxy must forget is noted in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlmodel import Session as Database
from sqlmodel import col, delete, select

from portal.adapters.db.tables import AppRow, GrantRow, SessionRow, ShuttingRow, TicketRow
from portal.core.apps.access import Grant, Ticket, public_key, ssh_key
from portal.core.session.session import LIVE


def close_apps(db: Database, session: str, apps: Collection[str], now: datetime) -> list[str]:
    """Drop the tickets and grants of these apps; returns all keys by which they are reached."""
    keys = []
    for app in apps:
        db.exec(
            delete(TicketRow).where(col(TicketRow.session) == session, col(TicketRow.app) == app)
        )
        query = select(GrantRow).where(col(GrantRow.session) == session, col(GrantRow.app) == app)
        keys += drop_grants(db, list(db.exec(query)), now)
        keys += close_origin_of(db, session, app, now)
    return keys


def close_origin_of(db: Database, session: str, app: str, now: datetime) -> list[str]:
    """The keys without a cookie by which an app may be reached are to be shut."""
    row = db.get(AppRow, (session, app))
    if row is None:
        return []
    keys = [public_key(row.label), ssh_key(row.label)]
    _note(db, keys, session, app, now)
    return keys


def drop_grants(db: Database, rows: Sequence[GrantRow], now: datetime) -> list[str]:
    """Forget grants; returns their keys."""
    keys = []
    for row in rows:
        key = Grant(**row.model_dump()).key
        _note(db, [key], row.session, row.app, now)
        keys.append(key)
        db.delete(row)
    db.flush()
    return keys


def target_of(db: Database, ticket: Ticket) -> AppRow | None:
    """The app that a ticket was made for, if it is still there and its owner's."""
    app = db.get(AppRow, (ticket.session, ticket.app))
    session = db.get(SessionRow, ticket.session)
    if app is None or session is None or app.label != ticket.label:
        return None
    return app if session.owner == ticket.user and session.state in LIVE else None


def trim_grants(db: Database, grant: Grant, most: int, now: datetime) -> list[str]:
    """Of the grants of this app the newest `most` stay; returns the keys of the others."""
    query = select(GrantRow).where(
        col(GrantRow.session) == grant.session, col(GrantRow.app) == grant.app
    )
    rows = list(db.exec(query.order_by(col(GrantRow.created).desc())))
    return drop_grants(db, rows[most:], now)


def trim_tickets(db: Database, ticket: Ticket, most: int) -> int:
    """Of the tickets of this app the newest `most` stay; returns how many its login has left."""
    query = select(TicketRow).where(
        col(TicketRow.session) == ticket.session, col(TicketRow.app) == ticket.app
    )
    rows = list(db.exec(query.order_by(col(TicketRow.expires).desc())))
    for row in rows[most:]:
        db.delete(row)
    db.flush()
    return sum(row.login == ticket.login for row in rows[:most])


def _note(db: Database, keys: Collection[str], session: str, app: str, now: datetime) -> None:
    for key in keys:
        db.merge(ShuttingRow(key=key, session=session, app=app, since=now))
