"""Slurm jobs of all users, as the Jobs page lists them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.tasks import shorten


class JobTab(StrEnum):
    """The tabs of the Jobs page."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"


def tab_of(state: JobState) -> JobTab:
    """The tab on which a job in this state is listed."""
    if state.over:
        return JobTab.ENDED
    return JobTab.PENDING if state is JobState.PENDING else JobTab.RUNNING


@dataclass(frozen=True)
class JobTexts:
    """Texts by a job's owner, with any content; read separately (adapters/slurm/texts.py)."""

    name: str = ""
    directory: str = ""
    command: str = ""
    """The script's path and arguments; without the folder if `slipway sbatch` submitted a copy;
    "" for --wrap and standard input."""
    stdout: str = ""
    stderr: str = ""
    """Absolute paths with all patterns replaced; "" if unknown."""
    dependency: str = ""


@dataclass(frozen=True)
class Job:
    """A job, a task of an array, or the tasks of an array that have not started."""

    report: JobReport
    """The last report of Slurm's queue or accounting."""
    array_id: str = ""
    """The id of its array; "" for other jobs."""
    tasks: str = ""
    """In an array: "4" for one task, or the tasks that have not started, as "0-19%4"."""
    het_id: str = ""
    """The id of its heterogeneous job; "" for other jobs."""
    het_offset: int = 0
    signal: int | None = None
    """The signal that ended it, if any."""
    texts: JobTexts = field(default_factory=JobTexts)
    session: str | None = None
    """The session that it runs; it has its own page."""
    gone: datetime | None = None
    """The time since which neither queue nor accounting knows it; None while one does."""

    @property
    def id(self) -> str:
        """Slurm's id of this record, which is unique."""
        return self.report.job_id

    @property
    def shown_id(self) -> str:
        """The id as Slurm's commands show it: 123, 123_4, 123_[5-9], 123+1."""
        if self.het_id:
            return f"{self.het_id}+{self.het_offset}"
        if not self.array_id:
            return self.id
        is_task = self.tasks.isdecimal()
        return f"{self.array_id}_{self.tasks if is_task else f'[{shorten(self.tasks)}]'}"

    @property
    def tab(self) -> JobTab:
        """The tab on which it is listed."""
        return tab_of(self.report.state)
