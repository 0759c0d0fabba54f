"""What the Sessions page shows of the list: its tabs, filters, sorting and rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from flask import request

from portal.core.auth.person import Person
from portal.core.cluster.usage import PartitionUsage, SlurmStatus
from portal.core.session.query import ListQuery, Page, Sort, read_leniently
from portal.services.cluster import partitions_for_user, usage_for_user
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

# What a click on a column's head sorts by first.
_FIRST = {sort.key: sort for sort in (
    Sort.NAME, Sort.STATE, Sort.OWNER, Sort.STARTED_LAST, Sort.MOST_CPUS, Sort.MOST_MEMORY
)}  # fmt: skip


@dataclass(frozen=True)
class SessionListView:
    """The list as somebody's address asks for it."""

    query: ListQuery
    group: str | None
    """Whose bars stand above the list."""
    person: Person
    page: Page
    counts: dict[str, int]
    status: SlurmStatus
    use: PartitionUsage | None

    @property
    def tab(self) -> str:
        """Which tab is open."""
        return self.query.state or "running"

    @cached_property
    def rows(self) -> list[SessionView]:
        """The rows as view models."""
        return session_views(self.person, self.page.sessions, self.status)

    def link(self, **changes: str | None) -> str:
        """The address of this list with changes, from its start unless a cursor is among them."""
        values = self.query.parameters(**changes)
        if group := changes.get("group", self.group):
            values["group"] = group
        return f"/sessions?{urlencode(values)}"

    def by(self, key: str) -> str:
        """Where a click on a column's head leads: to its order, or to the other way round."""
        sort = self.query.sort
        return self.link(sort=sort.turned if sort.key == key else _FIRST[key])

    def aria_sort(self, *keys: str) -> str | None:
        """How a screen reader calls the order, where one of these decides it."""
        if self.query.sort.key not in keys:
            return None
        return "descending" if self.query.sort.falling else "ascending"

    @property
    def tabs(self) -> dict[str, str]:
        """The tabs and their words."""
        return TABS

    @property
    def sorts(self) -> dict[Sort, str]:
        """The orders to choose from and their words."""
        return {s: text for s, text in SORTS.items() if self.person.admin or s.key != "owner"}

    @property
    def page_words(self) -> tuple[str, str]:
        """What the links to the page before and to the page after say."""
        by_time = {
            Sort.NEWEST: ("Newer sessions", "Older sessions"),
            Sort.OLDEST: ("Older sessions", "Newer sessions"),
        }
        return by_time.get(self.query.sort, ("Previous", "Next"))

    @property
    def environments(self) -> list[str]:
        """What can be filtered for, and what is."""
        images = services().sessions.catalog().images
        return _with(self.query.environment, [image.environment for image in images])

    @property
    def groups(self) -> list[str]:
        """The resource groups open to this person, and the one that is filtered for."""
        if self.person.admin:
            known = [group.name for group in services().sessions.status.partitions()]
        else:
            open_to = partitions_for_user(services().sessions.status, self.person.name)
            known = [group.name for group in open_to or []]
        return _with(self.query.resource_group, known)

    @property
    def owners(self) -> list[str]:
        """Whose sessions can be filtered for."""
        owners = services().sessions.owners(self.person)
        return _with(self.query.owner, owners) if owners else []


def _with(chosen: str | None, known: list[str]) -> list[str]:
    return sorted({*known, *([chosen] if chosen else [])})


def asked_for() -> SessionListView:
    """The list that this request's address asks for."""
    who, story = person(), services().sessions
    values = {"state": "running", **request.args.to_dict()}
    query = read_leniently(values, limit=PAGE)
    if query.state is None:
        query = query.model_copy(update={"state": "running"})
    group = request.args.get("group") or None
    use = usage_for_user(story.status, who.name, group)
    if use is None:
        group, use = None, usage_for_user(story.status, who.name, None)
    return SessionListView(
        query=query,
        group=group,
        person=who,
        page=story.query(who, query),
        counts=story.counts(who, query),
        status=story.status.slurm_status(),
        use=use,
    )
