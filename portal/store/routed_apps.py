"""The apps that have routes, with their grants: a few columns, since there are many."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, select
from sqlmodel import Session as Database
from sqlmodel import col

from portal.core.apps.access import AppState, OpenApp, RoutedApp
from portal.core.session.session import State
from portal.store.tables import AppRow, GrantRow, SessionRow

IS_AT_ORIGIN = (
    (col(AppRow.session) == GrantRow.session)
    & (col(AppRow.app) == GrantRow.app)
    & (col(AppRow.label) == GrantRow.label)
)
"""Whether a grant's app is still at its origin."""
IS_OF_OWNER = (col(SessionRow.id) == GrantRow.session) & (col(SessionRow.owner) == GrantRow.user)
# One string for each app: a row for each grant would take several times as long.
_HASHES = (
    select(func.aggregate_strings(col(GrantRow.cookie_hash), " "))
    .where(IS_AT_ORIGIN, IS_OF_OWNER)
    .correlate(AppRow, SessionRow)
    .scalar_subquery()
)
_ROUTED = (
    select(
        col(AppRow.session),
        col(AppRow.app),
        col(AppRow.label),
        col(AppRow.state),
        col(AppRow.public_since),
        col(AppRow.shut),
        col(SessionRow.address),
        col(SessionRow.port),
        _HASHES,
    )
    .join(SessionRow, col(SessionRow.id) == AppRow.session)
    .where(
        col(SessionRow.state) == State.RUNNING,
        col(SessionRow.address).is_not(None),
        col(SessionRow.port).is_not(None),
    )
)


def read_routed(db: Database, labels: Collection[str] | None) -> list[RoutedApp]:
    """The apps of running sessions: of all, or of those that have an app with such a label."""
    query = _ROUTED
    if labels is not None:
        sessions = select(col(AppRow.session)).where(col(AppRow.label).in_(labels))
        query = query.where(col(SessionRow.id).in_(sessions))
    return [
        RoutedApp(
            OpenApp(session, app, label, AppState(state), public_since=public, closed=shut),
            address or "",
            port or 0,
            tuple((hashes or "").split()),
        )
        for session, app, label, state, public, shut, address, port, hashes in db.execute(query)
    ]
