"""Search texts, order and pagination of the lists of sessions and jobs.

Keyset pagination: a page begins where the last one ended, without counting rows. So it is fast for
lists of any length, and new rows between two requests do not cause duplicates.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, Self, TypeGuard, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)

from portal.core.validation import wrong

_MAX_WORDS = 8
_MAX_TEXT = 200
_TIMES = frozenset({"created", "submitted", "started", "ended"})
_NUMBERS = {"cpus": 2**31, "memory": 2**31, "time_limit": 2**31, "priority": 2**63}
"""Sort keys that are numbers; greater ones do not fit into the database's column."""


class Order(StrEnum):
    """Base of the orders of a list: a sort key; a leading dash reverses the order."""

    @property
    def key(self) -> str:
        """The sort key without its direction."""
        return self.value.removeprefix("-")

    @property
    def descending(self) -> bool:
        """Whether the sort direction is descending."""
        return self.value.startswith("-")

    @property
    def reversed(self) -> Self:
        """The same sort key in reverse order, which every list has."""
        return type(self)(self.key if self.descending else f"-{self.key}")


AnyOrder = TypeVar("AnyOrder", bound=Order)
Query = TypeVar("Query", bound=BaseModel)


@dataclass(frozen=True)
class Cursor(Generic[AnyOrder]):
    """A position in a sorted list: right after, or right before, the row with this key and id."""

    sort: AnyOrder
    before: bool
    key: str | int | datetime
    id: str

    def __str__(self) -> str:
        """The opaque text for URLs."""
        moment = isinstance(self.key, datetime)
        key = self.key.isoformat() if isinstance(self.key, datetime) else self.key
        text = json.dumps([self.sort, self.before, moment, key, self.id])
        return base64.urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def read(cls, text: str, orders: type[AnyOrder]) -> Cursor[AnyOrder]:
        """Parse the cursor of an earlier response; raises ValueError for anything else."""
        try:
            data = json.loads(base64.b64decode(text.encode(), altchars=b"-_", validate=True))
            sort, before, moment, key, identifier = data
            # Databases compare in UTC; not every valid timestamp can be converted.
            key = _moment(key) if moment else key
            cursor = cls(orders(sort), before, key, identifier)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise ValueError("not a cursor") from None
        if type(before) is not bool or not is_text(identifier) or not cursor._fits():
            raise ValueError("not a cursor")
        return cursor

    def _fits(self) -> bool:
        """Whether the key has the type of this sort key."""
        name = self.sort.key
        if name in _TIMES:
            return isinstance(self.key, datetime)
        if name in _NUMBERS:
            return type(self.key) is int and abs(self.key) < _NUMBERS[name]
        return is_text(self.key)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without an offset")
    return moment.astimezone(UTC)


def is_text(value: object) -> TypeGuard[str]:
    """Whether it is a short text without control characters and lone surrogates.

    Stored texts have none, and databases refuse them.
    """
    return isinstance(value, str) and len(value) <= _MAX_TEXT and value.isprintable()


def _plain(value: str) -> str:
    if not is_text(value):
        raise wrong(f"use up to {_MAX_TEXT} printable characters")
    return unicodedata.normalize("NFC", value)  # as names are stored


PlainText = Annotated[str, AfterValidator(_plain)]
"""A text to filter by."""


def _of_this_list(value: str, info: ValidationInfo) -> str:
    sort = info.data.get("sort")
    try:
        if sort is not None and Cursor.read(value, type(sort)).sort is sort:
            return value
    except ValueError:
        pass
    raise wrong("use the cursor of an earlier answer")


CursorText = Annotated[str, AfterValidator(_of_this_list)]
"""A cursor in the order of the field "sort", which must be declared before it."""


SearchText = Annotated[
    PlainText | None, Field(description="Words that all have to occur somewhere")
]


class SearchQuery(BaseModel):
    """Base of the queries of lists, which have fields "q", "sort", "limit" and "cursor"."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def words(self) -> list[str]:
        """The search words."""
        text: str | None = getattr(self, "q", None)
        return (text or "").split()[:_MAX_WORDS]

    def parameters(self, **changes: str | None) -> dict[str, str]:
        """The URL parameters of this query with changes, without defaults."""
        values = self.model_dump(exclude={"limit"}, exclude_defaults=True) | changes
        if "cursor" not in changes:
            values.pop("cursor", None)  # a changed list begins at its start
        return {key: str(value) for key, value in values.items() if value}


def read_leniently(model: type[Query], values: Mapping[str, str], **fixed: Any) -> Query:
    """Parse the parameters of a page's URL; invalid ones are ignored."""
    parameters = {key: values[key].strip() for key in model.model_fields if key in values}
    parameters = {key: value for key, value in parameters.items() if value} | fixed
    while True:
        try:
            return model.model_validate(parameters)
        except ValidationError as error:
            invalid = {detail["loc"][0] for detail in error.errors()}
            parameters = {key: value for key, value in parameters.items() if key not in invalid}
