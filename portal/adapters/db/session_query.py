"""Queries for one page of the list of sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, func, literal, or_, select, tuple_
from sqlmodel import Session as Database
from sqlmodel import col

from portal.adapters.db.tables import SessionRow, UtcDateTime
from portal.core.session.query import Cursor, ListQuery, Page, Sort
from portal.core.session.session import Session

# Sessions that have not started sort as the latest.
_NOT_YET = literal(datetime(9999, 12, 31, tzinfo=UTC), UtcDateTime())

_KEYS: dict[str, ColumnElement[Any]] = {
    "created": col(SessionRow.created),  # type: ignore[dict-item]
    "name": func.lower(SessionRow.name),
    "state": col(SessionRow.state),  # type: ignore[dict-item]
    "owner": col(SessionRow.owner),  # type: ignore[dict-item]
    "started": func.coalesce(SessionRow.started, _NOT_YET),
    "cpus": col(SessionRow.cpus),  # type: ignore[dict-item]
    "memory": col(SessionRow.memory_mb),  # type: ignore[dict-item]
}


def query_page(db: Database, query: ListQuery) -> Page:
    """Read one page."""
    place = query.place
    back = place is not None and place.before
    key = _KEYS[query.sort.key]
    falling = query.sort.falling is not back
    wanted = select(SessionRow, key).where(*_conditions(query))
    if place is not None:
        here = tuple_(literal(place.key, key.type), literal(place.id))
        at = tuple_(key, col(SessionRow.id))
        wanted = wanted.where(at < here if falling else at > here)
    order = [c.desc() if falling else c.asc() for c in (key, col(SessionRow.id))]
    rows = db.execute(wanted.order_by(*order).limit(query.limit + 1)).all()
    found = [(Session.model_validate(row), value) for row, value in rows]
    return _page(query.sort, found[: query.limit], place, len(found) > query.limit)


def _page(sort: Sort, found: list[tuple[Session, Any]], place: Cursor | None, more: bool) -> Page:
    back = place is not None and place.before
    if back:
        found.reverse()
    if not found:
        return Page()
    (first, first_key), (last, last_key) = found[0], found[-1]
    after = str(Cursor(sort, before=False, key=last_key, id=last.id))
    before = str(Cursor(sort, before=True, key=first_key, id=first.id))
    return Page(
        sessions=tuple(session for session, _ in found),
        following=after if back or more else None,
        previous=before if (more if back else place is not None) else None,
    )


def _conditions(query: ListQuery) -> list[Any]:
    conditions: list[Any] = []
    if query.state:
        conditions.append(col(SessionRow.state).in_(query.states))
    if query.owner is not None:
        conditions.append(col(SessionRow.owner) == query.owner)
    if query.environment is not None:
        conditions.append(col(SessionRow.environment) == query.environment)
    if query.resource_group is not None:
        conditions.append(col(SessionRow.partition) == query.resource_group)
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
