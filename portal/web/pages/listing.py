"""Common view model of the lists of sessions and jobs: tabs, filters, order and parts."""

from __future__ import annotations

import hashlib
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlencode

from flask import make_response, render_template, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from portal.core.auth.person import Person
from portal.core.listing import Order
from portal.web.context import cluster_view

PAGE = 50
"""Rows on one page."""

MOST_CHOICES = 100
"""Values of a filter with a menu."""

DAYS = {"1": "Last 24 hours", "7": "Last 7 days", "30": "Last 30 days"}


class SortedQuery(Protocol):
    """The common attributes of the queries of all lists with an order."""

    @property
    def sort(self) -> Any:
        """The order."""

    def parameters(self, **changes: str | None) -> dict[str, str]:
        """The parameters of its URL with changes."""


class ListQuery(SortedQuery, Protocol):
    """The common attributes of the queries of lists of sessions and jobs."""

    @property
    def state(self) -> Any:
        """The tab; None for all tabs."""

    @property
    def days(self) -> int | None:
        """Filter: the number of past days."""


AnyQuery = TypeVar("AnyQuery", bound=ListQuery)


@dataclass(frozen=True)
class Noun:
    """The noun for the rows of a list, for its texts and scripts."""

    singular: str
    plural: str


AnySorted = TypeVar("AnySorted", bound=SortedQuery)


@dataclass(frozen=True)
class SortedView(Generic[AnySorted]):
    """A list with an order, in its address."""

    query: AnySorted

    path: ClassVar[str]
    first: ClassVar[Mapping[str, Order]]
    """The order after the first click on a column header, by its key."""
    most_choices: ClassVar[int] = MOST_CHOICES

    def link(self, **changes: str | None) -> str:
        """The URL of this list with changes; its first page, unless they include a cursor."""
        values = self.query.parameters(**changes)
        return f"{self.path}?{urlencode(values | self.beside(changes))}"

    def beside(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """Parameters of the URL that do not belong to the query."""
        return {}

    def by(self, key: str) -> str:
        """The URL of a column header: sorted by it, or in reverse order if it is already."""
        sort: Order = self.query.sort
        return self.link(sort=sort.reversed if sort.key == key else self.first[key])

    def aria_sort(self, *keys: str) -> str | None:
        """The value of aria-sort if the list is sorted by one of these keys, else None."""
        if self.query.sort.key not in keys:
            return None
        return "descending" if self.query.sort.descending else "ascending"


@dataclass(frozen=True)
class ListView(SortedView[AnyQuery], ABC):
    """The list of one request; subclasses define its rows."""

    person: Person
    counts: Mapping[Any, int]
    """Number of rows on each tab."""

    noun: ClassVar[Noun]
    tabs: ClassVar[Mapping[Any, str]]
    """The tabs with their titles."""
    start: ClassVar[Any]
    """The tab that is shown first."""
    orders: ClassVar[Mapping[Any, str]]
    """The orders with their titles."""
    since_word: ClassVar[str]
    """The event that the filter by days refers to."""
    filters: ClassVar[tuple[str, ...]]
    """The filters beside the search and the tab."""
    state_filter: ClassVar[str]
    """The name of the filter by state; each of its values belongs to one tab."""
    states: ClassVar[Mapping[Any, Sequence[Any]]]
    """The states on each tab."""
    state_words: ClassVar[Mapping[Any, str]]
    most_counted: ClassVar[int | None] = None
    """The number above which rows of a tab are not counted."""

    @property
    def tab(self) -> str:
        """The current tab."""
        return str(self.query.state or self.start)

    @property
    def sorts(self) -> dict[Any, str]:
        """The sort orders to choose from, with their titles."""
        orders = self.orders.items()
        return {s: text for s, text in orders if self.person.admin or s.key != "owner"}

    @property
    def newest(self) -> str:
        """The default order."""
        return str(next(iter(self.orders)))

    @property
    def statuses(self) -> list[tuple[str, str, dict[str, str]]]:
        """The states to filter by: each tab, its title, and its states with their titles."""
        return [
            (str(tab), self.tabs[tab], {str(state): self.state_words[state] for state in of})
            for tab, of in self.states.items()
        ]

    @property
    def periods(self) -> dict[str, str]:
        """The periods to filter by, and the current one."""
        days = str(self.query.days or "")
        return DAYS if days in ("", *DAYS) else DAYS | {days: f"Last {days} days"}

    @property
    def waiting(self) -> int:
        """The number of pending rows on the first tab, which are counted separately."""
        return 0

    @property
    def filters_set(self) -> int:
        """The number of active filters beside the search."""
        return sum(1 for name in self.filters if name in self.query.parameters())

    @property
    def without_filters(self) -> str:
        """The address of this tab without search and filters."""
        return self.link(**dict.fromkeys(("q", *self.filters)))

    @property
    def elsewhere(self) -> list[tuple[str, str, int]]:
        """The other tabs with rows that match: address, title, number."""
        return [
            (self.tab_link(tab), word, self.counts[tab])
            for tab, word in self.tabs.items()
            if tab != self.tab and self.counts.get(tab)
        ]

    def tab_link(self, tab: str) -> str:
        """The address of a tab; a state to filter by belongs to one tab only."""
        return self.link(state=tab, **{self.state_filter: None})

    @property
    def page_words(self) -> tuple[str, str]:
        """The texts of the links to the previous and the next page."""
        newer, older = (f"{age} {self.noun.plural}" for age in ("Newer", "Older"))
        sort = self.query.sort
        if sort.key != self.newest.removeprefix("-"):
            return "Previous", "Next"
        return (newer, older) if sort.descending else (older, newer)

    def partitions(self, chosen: str | None) -> list[str]:
        """The partitions to filter by, including the current one."""
        cluster = cluster_view()
        if self.person.admin:
            return with_chosen(chosen, [group.name for group in cluster.partitions])
        offered = cluster.launch_options(self.person.name)  # with any of their accounts
        return with_chosen(chosen, [group.name for group in offered.groups])

    @classmethod
    def on_its_tab(cls, query: AnyQuery) -> AnyQuery:
        """The query, moved to the tab of the state that it filters by, else to the first tab."""
        state = getattr(query, cls.state_filter)
        changes: dict[str, Any] = {} if query.state else {"state": cls.start}
        if state is not None and state not in cls.states[query.state or cls.start]:
            tab = next(tab for tab, of in cls.states.items() if state in of)
            changes = {"state": tab, "cursor": None}
        model: Any = query
        moved: AnyQuery = model.model_copy(update=changes)
        return moved

    def parts(self, names: Sequence[str], **values: object) -> Parts:
        """The parts of the page that it polls; each is one element of the page."""
        return render_parts(names, listing=self, person=self.person, **values)


@dataclass(frozen=True)
class Parts:
    """The rendered parts of a page by name."""

    html: Mapping[str, Markup]

    @property
    def mark(self) -> str:
        """An ETag of all parts."""
        return hashlib.sha256("".join(self.html.values()).encode()).hexdigest()[:20]

    def answer(self, extra: str = "") -> ResponseReturnValue:
        """The response to a poll, with `extra` HTML; 204 if the browser already has these parts."""
        mark = self.mark
        if not extra and request.headers.get("If-None-Match", "").strip('"') == mark:
            return "", 204
        response = make_response("".join(self.html.values()) + extra)
        response.headers["ETag"] = f'"{mark}"'
        return response


def render_parts(names: Sequence[str], **values: object) -> Parts:
    """The parts of a page that it polls, from templates such as "_rows.html"."""
    return Parts(
        {
            name[1:-5]: Markup(render_template(name, **values))  # noqa: S704 - our own template
            for name in names
        }
    )


def with_chosen(chosen: str | None, values: Sequence[str]) -> list[str]:
    """The values of a filter, including the current one."""
    return sorted({*values, *([chosen] if chosen else [])})
