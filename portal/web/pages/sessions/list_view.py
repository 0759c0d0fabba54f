"""View model of the list on the Sessions page: tabs, filters, order and rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from flask import request

from portal.core.auth.person import Person
from portal.core.cluster.meters import PartitionUsage
from portal.core.cluster.node_use import Overview
from portal.core.cluster.usage import SlurmStatus
from portal.core.listing import read_leniently
from portal.core.session.query import ListQuery, Page, Sort, Status
from portal.web.context import person, services
from portal.web.pages.sessions.rows import SessionView, session_views

PAGE = 50
"""Sessions on one page."""

TABS = {"running": "Running", "finished": "Finished", "other": "Failed"}

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

STATUSES = {
    "running": (Status.WAITING, Status.STARTING, Status.RUNNING, Status.ENDING),
    "finished": (Status.ENDED_ON_REQUEST, Status.TIME_LIMIT, Status.UNUSED, Status.BY_ITSELF),
    "other": (
        Status.DID_NOT_START,
        Status.OUT_OF_MEMORY,
        Status.NODE_FAILURE,
        Status.PREEMPTED,
        Status.FAILED,
    ),
}
"""The statuses to choose from in each tab."""

STATUS_WORDS = {
    Status.WAITING: "Pending",
    Status.STARTING: "Starting",
    Status.RUNNING: "Running",
    Status.ENDING: "Ending",
    Status.ENDED_ON_REQUEST: "Ended by somebody",
    Status.TIME_LIMIT: "Time limit",
    Status.UNUSED: "Not used",
    Status.BY_ITSELF: "Ended by itself",
    Status.DID_NOT_START: "Did not start",
    Status.OUT_OF_MEMORY: "Out of memory",
    Status.NODE_FAILURE: "Node failure",
    Status.PREEMPTED: "Preempted",
    Status.FAILED: "Other failures",
}

DAYS = {"1": "Last 24 hours", "7": "Last 7 days", "30": "Last 30 days"}

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
    cluster: Overview | None = None
    """For administrators who look at other users' sessions, instead of their own use."""

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
    def statuses(self) -> list[tuple[str, str, dict[str, str]]]:
        """The statuses to filter by: each tab, its title, and its statuses with their titles."""
        return [
            (tab, TABS[tab], {status.value: STATUS_WORDS[status] for status in of})
            for tab, of in STATUSES.items()
        ]

    @property
    def periods(self) -> dict[str, str]:
        """The periods to filter by, and the current one."""
        days = str(self.query.days or "")
        return DAYS if days in ("", *DAYS) else DAYS | {days: f"Last {days} days"}

    @property
    def elsewhere(self) -> list[tuple[str, str, int]]:
        """The other tabs with sessions that match: address, title, number."""
        return [
            (self.link(state=tab, status=None), word, self.counts[tab])
            for tab, word in TABS.items()
            if tab != self.tab and self.counts[tab]
        ]

    def tab_link(self, tab: str) -> str:
        """The address of a tab; a status belongs to one tab only."""
        return self.link(state=tab, status=None)

    @property
    def filters_set(self) -> int:
        """How many filters beside the search are set."""
        query = self.query
        others = (query.environment, query.resource_group, query.owner, query.status, query.days)
        return sum(1 for one in others if one)

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
        catalog = services().catalog()
        found = _with(self.query.environment, [image.environment for image in catalog.images])
        return sorted(found, key=lambda name: catalog.environment_title(name).casefold())

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
    query = read_leniently(ListQuery, values, limit=PAGE)
    if query.state is None:
        query = query.model_copy(update={"state": "running"})
    if query.status is not None and query.status not in STATUSES[query.state or "running"]:
        tab = next(tab for tab, of in STATUSES.items() if query.status in of)
        query = query.model_copy(update={"state": tab, "cursor": None})
    group = request.args.get("group") or None
    use = cluster.usage_for(who.name, group)
    if use is None:
        group, use = None, cluster.usage_for(who.name, None)
    everybody = who.admin and query.owner != who.name
    return SessionListView(
        query=query,
        group=group,
        person=who,
        page=sessions.query(who, query),
        counts=sessions.counts(who, query),
        status=cluster.slurm_status(),
        use=use,
        cluster=services().administration.nodes(who) if everybody else None,
    )
