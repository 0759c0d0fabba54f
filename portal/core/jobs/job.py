"""One Slurm job of anybody's, as the Jobs page knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from portal.core.cluster.jobs import JobReport, JobState
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
    """What the owner of a job wrote: it may be any text, and is read separately (queue_texts)."""

    name: str = ""
    directory: str = ""
    command: str = ""
    """The script's path with its arguments; without the folder if `slipway sbatch` submitted a
    copy of it; "" for --wrap and standard input."""
    stdout: str = ""
    stderr: str = ""
    """Absolute paths with all patterns replaced; "" if unknown."""
    dependency: str = ""


@dataclass(frozen=True)
class Job:
    """A job, a task of an array, or the tasks of an array that have not started."""

    report: JobReport
    """What Slurm's queue or accounting last said."""
    array_id: str = ""
    """The number of its array; "" if it is none."""
    tasks: str = ""
    """Of an array: "4" for one task, or the tasks that have not started, as "0-19%4"."""
    het_id: str = ""
    """The number of its heterogeneous job; "" if it is none."""
    het_offset: int = 0
    signal: int | None = None
    """The signal that ended it, if any."""
    texts: JobTexts = field(default_factory=JobTexts)
    session: str | None = None
    """The session that it runs, which has a page of its own."""
    gone: datetime | None = None
    """Since when neither the queue nor accounting knows it."""

    @property
    def id(self) -> str:
        """Slurm's number of this record, which is unique."""
        return self.report.job_id

    @property
    def shown_id(self) -> str:
        """The number as Slurm's commands show it: 123, 123_4, 123_[5-9], 123+1."""
        if self.het_id:
            return f"{self.het_id}+{self.het_offset}"
        if not self.array_id:
            return self.id
        one = self.tasks.isdecimal()
        return f"{self.array_id}_{self.tasks if one else f'[{shorten(self.tasks)}]'}"

    @property
    def tab(self) -> JobTab:
        """The tab on which it is listed."""
        return tab_of(self.report.state)
