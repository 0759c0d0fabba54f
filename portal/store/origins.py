"""Origins in the database: functions that run inside a transaction of AccessStore."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import or_
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.apps.access import OpenApp
from portal.core.apps.origins import (
    KnownOrigins,
    Origin,
    OriginChoice,
    OriginRequest,
    OriginUse,
    port_of,
)
from portal.core.session.session import LIVE, State
from portal.errors import Conflict
from portal.store.tables import AppRow, EndedAppRow, OriginRow, PendingRemovalRow, SessionRow


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
"""How long an owner finds at an app's address how its session ended."""


def require_live(db: Database, session: str) -> None:
    """Raise Conflict for a session that is over or ending, in which nothing may be opened."""
    state = db.exec(select(SessionRow.state).where(col(SessionRow.id) == session)).first()
    if state not in LIVE - {State.ENDING}:
        raise Conflict("This session is over. Launch it again to use its apps.")


def known_origins(db: Database, request: OriginRequest) -> KnownOrigins:
    """The labels in use, all ports ever used, and the names that this use has had."""
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
    """Remember whose apps were last at these origins; forget those of long ago."""
    db.exec(delete(EndedAppRow).where(col(EndedAppRow.ended) < now - REMEMBERED))
    for row in apps:
        db.merge(EndedAppRow(label=row.label, session=row.session, app=row.app, ended=now))


def _origin(row: OriginRow) -> Origin:
    use = OriginUse(row.owner, row.environment, row.version, row.app)
    return Origin(row.label, use, row.kept, row.shared, row.mark, row.used)
