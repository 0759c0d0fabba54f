"""Queries for one page of the list of sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, literal, or_, select
from sqlmodel import Session as Database
from sqlmodel import col

from portal.core.session.query import CAUSE_OF, STATES_OF, ListQuery, Page, Sort
from portal.core.session.session import Session, State
from portal.store.paging import Listing, read_piece
from portal.store.tables import SessionRow, UtcDateTime

# Sessions that have not started come last, in either order.
_NOT_YET = literal(datetime(9999, 12, 31, tzinfo=UTC), UtcDateTime())
_NEVER = literal(datetime(1970, 1, 1, tzinfo=UTC), UtcDateTime())

_ID: ColumnElement[Any] = col(SessionRow.id)  # type: ignore[assignment]
_KEYS: dict[str, ColumnElement[Any]] = {
    "created": col(SessionRow.created),  # type: ignore[dict-item]
    "name": func.lower(SessionRow.name),
    "state": col(SessionRow.state),  # type: ignore[dict-item]
    "owner": col(SessionRow.owner),  # type: ignore[dict-item]
    "started": func.coalesce(SessionRow.started, _NOT_YET),
    "cpus": col(SessionRow.cpus),  # type: ignore[dict-item]
    "memory": col(SessionRow.memory_mb),  # type: ignore[dict-item]
}


def _key(sort: Sort) -> ColumnElement[Any]:
    if sort is Sort.STARTED_LAST:
        return func.coalesce(SessionRow.started, _NEVER)
    return _KEYS[sort.key]


def query_page(db: Database, query: ListQuery, now: datetime) -> Page:
    """Read one page."""
    listing = Listing(query.sort, _key(query.sort), _ID, query.place, query.limit)
    piece = read_piece(db, select(SessionRow).where(*_conditions(query, now)), listing)
    sessions = tuple(Session.model_validate(row) for row in piece.rows)
    return Page(sessions, piece.following, piece.previous)


def count_states(db: Database, query: ListQuery, now: datetime) -> dict[State, int]:
    """Number of sessions in each state that match all filters but the tab and the status."""
    everywhere = query.model_copy(update={"state": None, "status": None})
    conditions = _conditions(everywhere, now)
    counted = (
        select(col(SessionRow.state), func.count())
        .where(*conditions)
        .group_by(col(SessionRow.state))
    )
    return {State(state): number for state, number in db.execute(counted)}


def _conditions(query: ListQuery, now: datetime) -> list[Any]:
    conditions: list[Any] = []
    if query.status in STATES_OF:
        conditions.append(col(SessionRow.state).in_(STATES_OF[query.status]))
    elif query.status is not None:
        conditions.append(col(SessionRow.cause) == CAUSE_OF[query.status])
    if query.days is not None:
        conditions.append(col(SessionRow.created) >= now - timedelta(days=query.days))
    if query.state:
        conditions.append(col(SessionRow.state).in_(query.states))
    if query.owner is not None:
        conditions.append(col(SessionRow.owner) == query.owner)
    if query.environment is not None:
        conditions.append(col(SessionRow.environment) == query.environment)
    if query.resource_group is not None:
        conditions.append(col(SessionRow.partition) == query.resource_group)
    if query.hub is not None:
        conditions.append(col(SessionRow.hub_prefix) == query.hub)
    return [*conditions, *(_has(word, query.owner is None) for word in query.words)]


def _has(word: str, owners: bool) -> Any:
    """Whether a word occurs in a session; % and _ are not wildcards."""
    texts = [
        col(SessionRow.name),
        col(SessionRow.environment),
        col(SessionRow.version),
        col(SessionRow.node),
        col(SessionRow.partition),
    ]
    if owners:  # among one user's sessions every row would match
        texts.append(col(SessionRow.owner))
    starts = [col(SessionRow.id), col(SessionRow.job_id)]
    return or_(
        *(text.icontains(word, autoescape=True) for text in texts),
        *(text.istartswith(word, autoescape=True) for text in starts),
    )
