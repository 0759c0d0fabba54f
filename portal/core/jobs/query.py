"""Filters, sorting and pagination of the job list, for pages and REST API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from portal.core.cluster.jobs import JobState
from portal.core.jobs.job import Job, JobTab

MAX_AT_ONCE = 500
"""Jobs in one response, or in one action."""


class JobSort(StrEnum):
    """What the list is sorted by; a leading dash reverses the order."""

    NEWEST = "-submitted"
    OLDEST = "submitted"
    NAME = "name"
    NAME_BACK = "-name"
    OWNER = "owner"
    OWNER_BACK = "-owner"
    STARTED_LAST = "-started"
    STARTED_FIRST = "started"
    ENDED_LAST = "-ended"
    ENDED_FIRST = "ended"
    PRIORITY = "-priority"
    MOST_CPUS = "-cpus"
    MOST_MEMORY = "-memory"


class JobQuery(BaseModel):
    """Which jobs to list: filters, sorting, page size and cursor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: JobTab | None = None
    owner: str | None = None
    q: str | None = Field(None, description="Words that all have to occur somewhere")
    partition: str | None = None
    account: str | None = None
    slurm_state: JobState | None = None
    sessions: Literal["yes", "no", "only"] = "yes"
    """Whether jobs of sessions are listed."""
    array: str | None = None
    """Only the tasks of this array, each of them."""
    days: (
        Annotated[int, Field(ge=1, le=3650, description="Submitted in the last N days")] | None
    ) = None
    sort: JobSort = JobSort.NEWEST
    limit: Annotated[int, Field(ge=1, le=MAX_AT_ONCE)] = 50
    cursor: str | None = None


@dataclass(frozen=True)
class JobRow:
    """One row of the list: a job, or an array with all of its tasks."""

    job: Job
    """The job; for an array, its tasks that wait, or else the task that was submitted last."""
    states: Mapping[JobState, int] = field(default_factory=dict)
    """Of an array: how many of its tasks on this tab are in each state."""

    @property
    def is_array(self) -> bool:
        """Whether it stands for several tasks."""
        return bool(self.states)


@dataclass(frozen=True)
class JobPage:
    """One page of the list, and the cursors of the next and the previous page."""

    rows: tuple[JobRow, ...] = ()
    following: str | None = None
    previous: str | None = None
