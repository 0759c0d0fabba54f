"""Keyset pagination over SQLAlchemy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Row, Select, literal, tuple_
from sqlmodel import Session as Database

from portal.core.listing import Cursor, Order
from portal.errors import FieldError, InvalidRequest

AnyOrder = TypeVar("AnyOrder", bound=Order)
MAX_DIGITS = 18
"""Digits of a number in a cursor: greater numbers do not fit into the database's column."""


@dataclass(frozen=True)
class Piece:
    """Rows of one page, and the cursors of the next and the previous page."""

    rows: tuple[Any, ...] = ()
    following: str | None = None
    previous: str | None = None


@dataclass(frozen=True)
class Listing(Generic[AnyOrder]):
    """A list's order, and the cursor and length of a page."""

    order: AnyOrder
    key: ColumnElement[Any]
    id: ColumnElement[Any]
    """A unique column: the order of rows with the same key."""
    cursor: Cursor[AnyOrder] | None
    limit: int


def read_piece(db: Database, query: Select[Any], listing: Listing[AnyOrder]) -> Piece:
    """Read one page of a query; of its columns, `Piece.rows` has the first."""
    cursor, key, unique = listing.cursor, listing.key, listing.id
    back = cursor is not None and cursor.before
    falling = listing.order.descending is not back
    if cursor is not None:
        start = tuple_(literal(cursor.key, key.type), literal(_unique(cursor, unique), unique.type))
        query = query.where(tuple_(key, unique) < start if falling else tuple_(key, unique) > start)
    columns = [c.desc() if falling else c.asc() for c in (key, unique)]
    rows = db.execute(
        query.add_columns(key, unique).order_by(*columns).limit(listing.limit + 1)
    ).all()
    has_more = len(rows) > listing.limit
    return _piece(listing.order, list(rows[: listing.limit]), cursor, has_more)


def _unique(cursor: Cursor[AnyOrder], column: ColumnElement[Any]) -> str | int:
    if column.type.python_type is not int:
        return cursor.id
    if not (cursor.id.isascii() and cursor.id.isdecimal() and len(cursor.id) <= MAX_DIGITS):
        raise InvalidRequest([FieldError("cursor", "use the cursor of an earlier answer")])
    return int(cursor.id)


def _piece(
    order: AnyOrder, rows: list[Row[Any]], cursor: Cursor[AnyOrder] | None, has_more: bool
) -> Piece:
    back = cursor is not None and cursor.before
    if back:
        rows.reverse()
    if not rows:
        return Piece()
    after = _cursor(order, rows, before=False)
    before = _cursor(order, rows, before=True)
    return Piece(
        rows=tuple(row[0] for row in rows),
        following=after if back or has_more else None,
        previous=before if (has_more if back else cursor is not None) else None,
    )


def _cursor(order: AnyOrder, rows: Sequence[Row[Any]], *, before: bool) -> str:
    _row, key, identifier = tuple(rows[0] if before else rows[-1])
    return str(Cursor(order, before=before, key=key, id=str(identifier)))
