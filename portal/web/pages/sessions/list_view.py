"""View model of the list on the Sessions page: tabs, filters, order and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from flask import request

from portal.core.auth.person import Person
from portal.core.cluster.choice.offers import Offer
from portal.core.cluster.meters import PartitionUsage
from portal.core.cluster.node_list import NodeSummary
from portal.core.cluster.usage import SlurmStatus
from portal.core.listing import read_leniently
from portal.core.session.query import ListQuery, Page, Sort, Status
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.web.context import cluster_view, person, services
from portal.web.pages.launch.recent import last_options
from portal.web.pages.launch.slurm_offers import offers_to
from portal.web.pages.listing import MOST_CHOICES, PAGE, ListView, Noun, with_chosen
from portal.web.pages.sessions.rows import SessionView, session_views

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

# The sort order after the first click on a column header.
_FIRST = {sort.key: sort for sort in (
    Sort.NAME, Sort.STATE, Sort.OWNER, Sort.STARTED_LAST, Sort.MOST_CPUS, Sort.MOST_MEMORY
)}  # fmt: skip


@dataclass(frozen=True)
class SessionListView(ListView[ListQuery]):
    """The list of one request."""

    path = "/sessions"
    noun = Noun("session", "sessions")
    tabs = TABS
    start = "running"
    orders = SORTS
    first = _FIRST
    since_word = "Launched"
    filters = ("environment", "resource_group", "owner", "status", "days")
    state_filter = "status"
    states = STATUSES
    state_words = STATUS_WORDS

    group: str | None
    """The resource group of the usage bars above the list."""
    page: Page
    status: SlurmStatus
    use: PartitionUsage | None
    open_to_me: Sequence[str] = ()
    """The resource groups that any of the user's accounts may use."""
    accounts: Sequence[Offer] = ()
    """The accounts to choose from for the usage bars; () if there is just one."""
    options: SlurmOptions = NO_OPTIONS
    """The account and QOS of the usage bars."""
    cluster: NodeSummary | None = None
    """The cluster's use, for administrators who view other users' sessions."""

    @cached_property
    def rows(self) -> list[SessionView]:
        """The rows as view models."""
        return session_views(self.person, self.page.sessions, self.status)

    def beside(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """The resource group and the account of the usage bars."""
        group, account = changes.get("group", self.group), request.args.get("account")
        return {**({"group": group} if group else {}), **({"account": account} if account else {})}

    @property
    def charged(self) -> str:
        """The account and QOS of the usage bars in words; "" for Slurm's defaults."""
        account = "" if self.accounts else self.options.account  # shown by the menu
        words = [f"account {account}" if account else "", f"QOS {self.options.qos}"]
        return " and ".join(filter(None, words if self.options.qos else words[:1]))

    @property
    def waiting(self) -> int:
        """The number of pending sessions on the first tab."""
        return self.counts["waiting"]

    @property
    def environments(self) -> list[str]:
        """The environments to filter by, including the current one."""
        catalog = services().catalog()
        names = with_chosen(self.query.environment, [image.environment for image in catalog.images])
        return sorted(names, key=lambda name: catalog.environment_title(name).casefold())

    @property
    def groups(self) -> list[str]:
        """The resource groups to filter by, including the current one."""
        return self.partitions(self.query.resource_group)

    @property
    def owners(self) -> list[str]:
        """The owners to filter by; too many for a menu if there are more than it can have."""
        owners = services().sessions.owners(self.person, MOST_CHOICES + 1)
        return with_chosen(self.query.owner, owners) if owners else []


def list_of_request() -> SessionListView:
    """The list for the current request."""
    user, sessions, cluster = person(), services().sessions, cluster_view()
    parsed = read_leniently(ListQuery, request.args.to_dict(), limit=PAGE)
    query = SessionListView.on_its_tab(parsed)
    group = request.args.get("group") or None
    chosen = _chosen(user)
    offered, options = offers_to(user, {"resource_group": group or "", **chosen})
    use = cluster.usage_for(user.name, group, options)
    if use is None:  # the group is closed to this account, or to the user
        offered, options = offers_to(user, {"resource_group": group or ""})
        use = cluster.usage_for(user.name, group, options)
    if use is None:
        group = None
        offered, options = offers_to(user, {})
        use = cluster.usage_for(user.name, None, options)
    everybody = user.admin and query.owner != user.name
    return SessionListView(
        query=query,
        group=group,
        person=user,
        page=sessions.query(user, query),
        counts=sessions.counts(user, query),
        status=cluster.status,
        use=use,
        open_to_me=[partition.name for partition in offered.groups],
        accounts=offered.accounts if len(offered.accounts) > 1 else (),
        options=options,
        cluster=services().administration.nodes(user) if everybody else None,
    )


def _chosen(user: Person) -> dict[str, str]:
    """The account in the query, else account and QOS of the user's last session."""
    account = request.args.get("account")
    return last_options(user) if account is None else {"account": account}
