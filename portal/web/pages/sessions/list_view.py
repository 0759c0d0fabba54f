"""View model of the list on the Sessions page: tabs, filters, order and rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from flask import request

from portal.core.auth.person import Person
from portal.core.cluster.usage import PartitionUsage, SlurmStatus
from portal.core.session.query import ListQuery, Page, Sort, read_leniently
from portal.web.context import person, services
from portal.web.pages.sessions.rows import SessionView, session_views

PAGE = 50
"""Sessions on one page."""

TABS = {"running": "Running", "finished": "Finished", "other": "Others"}

SORTS = {
    Sort.NEWEST: "Newest first",
    Sort.OLDEST: "Oldest first",
    Sort.NAME: "Name",
    Sort.NAME_BACK: "Name, Z to A",
    Sort.STATE: "Status",
    Sort.STATE_BACK: "Status, Z to A",
    Sort.OWNER: "Owner",
    Sort.OWNER_BACK: "Owner, Z to A",
    Sort.STARTED_LAST: "Started last",
    Sort.STARTED_FIRST: "Started first",
    Sort.MOST_CPUS: "Most cores",
    Sort.FEWEST_CPUS: "Fewest cores",
    Sort.MOST_MEMORY: "Most memory",
    Sort.LEAST_MEMORY: "Least memory",
}

# The sort order after the first click on a column header.
_FIRST = {sort.key: sort for sort in (
    Sort.NAME, Sort.STATE, Sort.OWNER, Sort.STARTED_LAST, Sort.MOST_CPUS, Sort.MOST_MEMORY
)}  # fmt: skip


@dataclass(frozen=True)
class SessionListView:
    """The list of one request."""

    query: ListQuery
    group: str | None
    """The resource group of the usage bars above the list."""
    person: Person
    page: Page
    counts: dict[str, int]
    status: SlurmStatus
    use: PartitionUsage | None

    @property
    def tab(self) -> str:
        """The current tab."""
        return self.query.state or "running"

    @cached_property
    def rows(self) -> list[SessionView]:
        """The rows as view models."""
        return session_views(self.person, self.page.sessions, self.status)

    def link(self, **changes: str | None) -> str:
        """The URL of this list with changes; from its start, unless they include a cursor."""
        values = self.query.parameters(**changes)
        if group := changes.get("group", self.group):
            values["group"] = group
        return f"/sessions?{urlencode(values)}"

    def by(self, key: str) -> str:
        """The URL of a column header: sorted by it, or in reverse order if it is already."""
        sort = self.query.sort
        return self.link(sort=sort.turned if sort.key == key else _FIRST[key])

    def aria_sort(self, *keys: str) -> str | None:
        """The value of aria-sort if the list is sorted by one of these keys, else None."""
        if self.query.sort.key not in keys:
            return None
        return "descending" if self.query.sort.falling else "ascending"

    @property
    def tabs(self) -> dict[str, str]:
        """The tabs with their titles."""
        return TABS

    @property
    def sorts(self) -> dict[Sort, str]:
        """The sort orders to choose from, with their titles."""
        return {s: text for s, text in SORTS.items() if self.person.admin or s.key != "owner"}

    @property
    def page_words(self) -> tuple[str, str]:
        """The texts of the links to the previous and the next page."""
        by_time = {
            Sort.NEWEST: ("Newer sessions", "Older sessions"),
            Sort.OLDEST: ("Older sessions", "Newer sessions"),
        }
        return by_time.get(self.query.sort, ("Previous", "Next"))

    @property
    def environments(self) -> list[str]:
        """The environments to filter by, including the current one."""
        images = services().catalog().images
        return _with(self.query.environment, [image.environment for image in images])

    @property
    def groups(self) -> list[str]:
        """The resource groups to filter by, including the current one."""
        if self.person.admin:
            known = [group.name for group in services().cluster.partitions()]
        else:
            open_to = services().cluster.partitions_for(self.person.name)
            known = [group.name for group in open_to or []]
        return _with(self.query.resource_group, known)

    @property
    def owners(self) -> list[str]:
        """The owners to filter by."""
        owners = services().sessions.owners(self.person)
        return _with(self.query.owner, owners) if owners else []


def _with(chosen: str | None, known: list[str]) -> list[str]:
    return sorted({*known, *([chosen] if chosen else [])})


def asked_for() -> SessionListView:
    """The list for the current request."""
    who, sessions, cluster = person(), services().sessions, services().cluster
    values = {"state": "running", **request.args.to_dict()}
    query = read_leniently(values, limit=PAGE)
    if query.state is None:
        query = query.model_copy(update={"state": "running"})
    group = request.args.get("group") or None
    use = cluster.usage_for(who.name, group)
    if use is None:
        group, use = None, cluster.usage_for(who.name, None)
    return SessionListView(
        query=query,
        group=group,
        person=who,
        page=sessions.query(who, query),
        counts=sessions.counts(who, query),
        status=cluster.slurm_status(),
        use=use,
    )
