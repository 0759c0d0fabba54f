"""Filters, sorting and pagination of the job list, for pages and REST API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job, JobTab
from portal.core.listing import Cursor, CursorText, Order, PlainText, SearchQuery, SearchText
from portal.core.validation import Matching

MAX_AT_ONCE = 500
"""Jobs in one response, or in one action."""
MAX_SEARCHED = 50_000
"""Rows that a list counts, and the newest ended jobs that it searches, or sorts by other columns
than times: sites have tens of millions."""


class JobSort(Order):
    """The order of the list.

    By status: the state, and for pending jobs also the reason. By start: for pending jobs the
    estimate. By time limit: no limit counts as the longest.
    """

    NEWEST = "-submitted"
    OLDEST = "submitted"
    NAME = "name"
    NAME_BACK = "-name"
    OWNER = "owner"
    OWNER_BACK = "-owner"
    STATUS = "status"
    STATUS_BACK = "-status"
    PARTITION = "partition"
    PARTITION_BACK = "-partition"
    STARTED_LAST = "-started"
    STARTED_FIRST = "started"
    ENDED_LAST = "-ended"
    ENDED_FIRST = "ended"
    LONGEST_LIMIT = "-time_limit"
    SHORTEST_LIMIT = "time_limit"
    HIGHEST_PRIORITY = "-priority"
    LOWEST_PRIORITY = "priority"
    MOST_CPUS = "-cpus"
    FEWEST_CPUS = "cpus"
    MOST_MEMORY = "-memory"
    LEAST_MEMORY = "memory"


class JobQuery(SearchQuery):
    """Filters, order, page size and cursor of the job list."""

    state: JobTab | None = None
    owner: PlainText | None = None
    q: SearchText = None
    partition: PlainText | None = None
    account: PlainText | None = None
    slurm_state: JobState | None = None
    sessions: Literal["yes", "no", "only"] = "yes"
    """Whether jobs of sessions are listed."""
    array: Annotated[str, Matching("[0-9]{1,10}", "write the number of an array")] | None = None
    """Only the tasks of this array, one row each."""
    days: (
        Annotated[int, Field(ge=1, le=3650, description="Submitted in the last N days")] | None
    ) = None
    sort: JobSort = JobSort.NEWEST
    limit: Annotated[int, Field(ge=1, le=MAX_AT_ONCE)] = 50
    cursor: CursorText | None = None

    @property
    def narrowed(self) -> bool:
        """Whether there are filters other than the tab."""
        others = (self.owner, self.partition, self.account, self.slurm_state, self.array, self.days)
        return self.sessions != "yes" or any((self.words, *others))

    @property
    def reads_all(self) -> bool:
        """Whether rows have to be read that the page does not show: no index has this order, or
        these filters."""
        in_order = self.sort.key == "submitted" or (
            self.sort.key == "ended" and self.state is JobTab.ENDED and self.owner is None
        )
        filters = (self.words, self.partition, self.account, self.slurm_state)
        return not in_order or self.sessions != "yes" or any(filters)

    @property
    def place(self) -> Cursor[JobSort] | None:
        """The cursor at which the page begins; None at the start of the list."""
        return Cursor.read(self.cursor, JobSort) if self.cursor else None


@dataclass(frozen=True)
class JobRow:
    """One row of the list: a job, or an array with all of its tasks."""

    job: Job
    """The job; for an array, its pending tasks, else the task that was submitted last."""
    states: Mapping[JobState, int] = field(default_factory=dict)
    """For an array: the number of its tasks on this tab in each state."""

    @property
    def is_array(self) -> bool:
        """Whether the row represents an array."""
        return bool(self.states)


@dataclass(frozen=True)
class JobPage:
    """One page of the list, and the cursors of the next and the previous page."""

    rows: tuple[JobRow, ...] = ()
    following: str | None = None
    previous: str | None = None
    since: datetime | None = None
    """Ended jobs submitted before were not searched; None: all were."""
    counted: int = 0
    """Of an array whose tasks these are: the number of those that are counted only."""
