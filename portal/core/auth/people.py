"""The administrators' list of people who are logged in: how it is filtered and sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from portal.core.auth.logins import UserLogins
from portal.core.listing import Cursor, CursorText, Order, PlainText, SearchQuery

MAX_PEOPLE = 500
"""People in one response."""


class PersonSort(Order):
    """Orders of the list of people."""

    NAME = "name"
    NAME_BACK = "-name"


class PeopleQuery(SearchQuery):
    """Which people to list: filter, sorting, page size and cursor."""

    name: PlainText | None = Field(None, description="A part of the user's name")
    sort: PersonSort = PersonSort.NAME
    limit: Annotated[int, Field(ge=1, le=MAX_PEOPLE)] = 100
    cursor: CursorText | None = None

    @property
    def place(self) -> Cursor[PersonSort] | None:
        """Where the page begins; None at the start of the list."""
        return Cursor.read(self.cursor, PersonSort) if self.cursor else None


@dataclass(frozen=True)
class PeoplePage:
    """One page of the list, and the cursors of the next and the previous one."""

    people: tuple[UserLogins, ...] = ()
    following: str | None = None
    previous: str | None = None
