"""View model of the list on the Jobs page: tabs, filters, order, rows, and an opened array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flask import request

from portal.core.cluster.job_reports import JobState
from portal.core.cluster.usage import SlurmStatus
from portal.core.jobs.job import JobTab, tab_of
from portal.core.jobs.query import MAX_SEARCHED, JobPage, JobQuery, JobSort
from portal.core.listing import read_leniently
from portal.web.context import cluster_view, person, services
from portal.web.pages.jobs.rows import CHIPS, JobView, job_views
from portal.web.pages.listing import MOST_CHOICES, PAGE, ListView, Noun, with_chosen

NOTHING = JobPage()

ROOT = "root"
"""Slurm's account above all others."""
TASKS = 20
"""Tasks of an opened array on one page."""

TABS = {JobTab.PENDING: "Pending", JobTab.RUNNING: "Running", JobTab.ENDED: "Ended"}

SORTS = {
    JobSort.NEWEST: "Newest first",
    JobSort.OLDEST: "Oldest first",
    JobSort.NAME: "Name",
    JobSort.NAME_BACK: "Name, Z to A",
    JobSort.OWNER: "Owner",
    JobSort.OWNER_BACK: "Owner, Z to A",
    JobSort.STATUS: "Status",
    JobSort.STATUS_BACK: "Status, Z to A",
    JobSort.PARTITION: "Partition",
    JobSort.PARTITION_BACK: "Partition, Z to A",
    JobSort.STARTED_LAST: "Started last",
    JobSort.STARTED_FIRST: "Started first",
    JobSort.ENDED_LAST: "Ended last",
    JobSort.ENDED_FIRST: "Ended first",
    JobSort.LONGEST_LIMIT: "Longest time limit",
    JobSort.SHORTEST_LIMIT: "Shortest time limit",
    JobSort.HIGHEST_PRIORITY: "Highest priority",
    JobSort.LOWEST_PRIORITY: "Lowest priority",
    JobSort.MOST_CPUS: "Most cores",
    JobSort.FEWEST_CPUS: "Fewest cores",
    JobSort.MOST_MEMORY: "Most memory",
    JobSort.LEAST_MEMORY: "Least memory",
}

TIMES = {
    JobTab.PENDING: ("Time limit", "time_limit"),
    JobTab.RUNNING: ("Started", "started"),
    JobTab.ENDED: ("Ended", "ended"),
}
"""The header of the column of times on each tab, and its sort key."""

STATES = {tab: tuple(state for state in JobState if tab_of(state) is tab) for tab in JobTab}
"""The states to choose from on each tab."""

SESSIONS = {"no": "Without sessions", "only": "Sessions only"}
GONE = {JobTab.PENDING: "is no longer pending", JobTab.RUNNING: "has ended"}
"""Why a row disappeared, by tab."""

# The sort order after the first click on a column header.
_FIRST = {sort.key: sort for sort in (
    JobSort.NAME, JobSort.OWNER, JobSort.STATUS, JobSort.PARTITION, JobSort.NEWEST,
    JobSort.STARTED_LAST, JobSort.ENDED_LAST, JobSort.SHORTEST_LIMIT, JobSort.MOST_CPUS,
    JobSort.MOST_MEMORY,
)}  # fmt: skip


@dataclass(frozen=True)
class JobListView(ListView[JobQuery]):
    """The list of one request."""

    path = "/jobs"
    noun = Noun("job", "jobs")
    tabs = TABS
    start = JobTab.RUNNING
    orders = SORTS
    first = _FIRST
    since_word = "Submitted"
    filters = ("partition", "account", "owner", "slurm_state", "sessions", "days", "array")
    state_filter = "slurm_state"
    states = STATES
    most_counted = MAX_SEARCHED
    state_words = {state: chip.word for state, chip in CHIPS.items()}  # noqa: RUF012 - constant

    page: JobPage
    status: SlurmStatus
    opened: str = ""
    """The number of the array whose tasks are shown below its row."""
    task_page: JobPage = NOTHING

    @cached_property
    def rows(self) -> list[JobView]:
        """The rows as view models."""
        return job_views(self.person, self.page.rows)

    @cached_property
    def tasks(self) -> list[JobView]:
        """The tasks of the opened array."""
        return job_views(self.person, self.task_page.rows)

    def is_open(self, row: JobView) -> bool:
        """Whether the tasks of this row are shown."""
        return row.row.is_array and row.key == self.opened

    def toggle(self, row: JobView) -> str:
        """The address that shows the tasks of an array, or hides them."""
        array = None if self.is_open(row) else row.key
        return self.link(cursor=self.query.cursor, open=array)

    def task_link(self, cursor: str) -> str:
        """The address of another page of the opened array's tasks."""
        return self.link(cursor=self.query.cursor, open=self.opened, tasks=cursor)

    @property
    def tasks_days(self) -> int:
        """Days after which completed and cancelled tasks are only counted."""
        return services().settings.batch.tasks_days

    @property
    def time_column(self) -> tuple[str, str]:
        """The header of the column of times on this tab, and its sort key."""
        return TIMES[JobTab(self.tab)]

    @property
    def gone(self) -> str:
        """Why a row disappeared from this tab; "" where rows stay."""
        return GONE.get(JobTab(self.tab), "")

    @property
    def live(self) -> bool:
        """Whether the jobs of this tab can be acted on."""
        return self.tab != JobTab.ENDED

    @property
    def accounts(self) -> list[str]:
        """The accounts to filter by, including the current one."""
        limits = cluster_view().limits
        if limits is None:
            names = []
        elif self.person.admin:
            names = [name for name in limits.accounts if name != ROOT]
        else:
            names = [link.account for link in limits.users.get(self.person.name, ())]
        return with_chosen(self.query.account, names)

    @property
    def partition_choices(self) -> list[str]:
        """The partitions to filter by."""
        return self.partitions(self.query.partition)

    @property
    def session_choices(self) -> dict[str, str]:
        """The choices of the filter by sessions."""
        return SESSIONS

    @property
    def owners(self) -> list[str]:
        """The owners to filter by; too many for a menu if there are more than it can have."""
        owners = services().jobs.owners(self.person, MOST_CHOICES + 1)
        return with_chosen(self.query.owner, owners) if owners else []


def list_of_request() -> JobListView:
    """The list for the current request."""
    user, jobs = person(), services().jobs
    parameters = request.args.to_dict()
    query = JobListView.on_its_tab(read_leniently(JobQuery, parameters, limit=PAGE))
    tasks = _tasks_of(parameters, query)
    return JobListView(
        query=query,
        person=user,
        page=jobs.query(user, query),
        counts=jobs.counts(user, query),
        status=services().cluster.slurm_status(),
        opened=tasks.array or "",
        task_page=jobs.query(user, tasks) if tasks.array else NOTHING,
    )


def _tasks_of(parameters: dict[str, str], query: JobQuery) -> JobQuery:
    """The query for the tasks of the opened array; without an array if none is opened.

    Oldest first, which is the order of task numbers, since Slurm starts tasks in turn.
    """
    opened = "" if query.array else parameters.get("open", "")
    task_parameters = {
        "array": opened,
        "cursor": parameters.get("tasks", ""),
        "sort": JobSort.OLDEST,
    }
    tasks = read_leniently(JobQuery, task_parameters, limit=TASKS)
    shared = ("state", "owner", "slurm_state", "partition")
    return tasks.model_copy(update={name: getattr(query, name) for name in shared})
