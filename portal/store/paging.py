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
"""Of a number in a cursor: greater ones do not fit into the database's column."""


@dataclass(frozen=True)
class Piece:
    """Rows of one page, and the cursors of the next and the previous page."""

    rows: tuple[Any, ...] = ()
    following: str | None = None
    previous: str | None = None


@dataclass(frozen=True)
class Listing(Generic[AnyOrder]):
    """How a list is sorted, and where the page begins."""

    order: AnyOrder
    key: ColumnElement[Any]
    id: ColumnElement[Any]
    """A unique column, for rows with the same key."""
    place: Cursor[AnyOrder] | None
    limit: int


def read_piece(db: Database, wanted: Select[Any], listing: Listing[AnyOrder]) -> Piece:
    """Read one page of what `wanted` selects: one column, and then others."""
    place, key, unique = listing.place, listing.key, listing.id
    back = place is not None and place.before
    falling = listing.order.descending is not back
    if place is not None:
        here = tuple_(literal(place.key, key.type), literal(_unique(place, unique), unique.type))
        wanted = wanted.where(tuple_(key, unique) < here if falling else tuple_(key, unique) > here)
    columns = [c.desc() if falling else c.asc() for c in (key, unique)]
    found = db.execute(
        wanted.add_columns(key, unique).order_by(*columns).limit(listing.limit + 1)
    ).all()
    more = len(found) > listing.limit
    return _piece(listing.order, list(found[: listing.limit]), place, more)


def _unique(place: Cursor[AnyOrder], column: ColumnElement[Any]) -> str | int:
    if column.type.python_type is not int:
        return place.id
    if not (place.id.isascii() and place.id.isdecimal() and len(place.id) <= MAX_DIGITS):
        raise InvalidRequest([FieldError("cursor", "use the cursor of an earlier answer")])
    return int(place.id)


def _piece(
    order: AnyOrder, found: list[Row[Any]], place: Cursor[AnyOrder] | None, more: bool
) -> Piece:
    back = place is not None and place.before
    if back:
        found.reverse()
    if not found:
        return Piece()
    after = _cursor(order, found, before=False)
    before = _cursor(order, found, before=True)
    return Piece(
        rows=tuple(row[0] for row in found),
        following=after if back or more else None,
        previous=before if (more if back else place is not None) else None,
    )


def _cursor(order: AnyOrder, found: Sequence[Row[Any]], *, before: bool) -> str:
    _row, key, identifier = tuple(found[0] if before else found[-1])
    return str(Cursor(order, before=before, key=key, id=str(identifier)))
