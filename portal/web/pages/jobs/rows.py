"""View models of jobs: labels, icons and figures for the templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portal.core.auth.person import Person
from portal.core.cluster.jobs import JobState
from portal.core.jobs.actions import JobAction
from portal.core.jobs.job import Job
from portal.core.jobs.offers import offered
from portal.core.jobs.query import JobRow
from portal.core.units import plural
from portal.web.api.jobs.responses import row_responses
from portal.web.api.models.jobs import JobOut
from portal.web.context import services
from portal.web.pages.jobs.words import called, in_question
from portal.web.pages.sessions.rows import REASON_CHIPS, Chip

_BAD = "exclamation-triangle-fill"
CHIPS = {
    JobState.PENDING: Chip("Pending", "hourglass-split", "wait"),
    JobState.CONFIGURING: Chip("Starting", "arrow-repeat", "start"),
    JobState.RUNNING: Chip("Running", "play-fill", "live"),
    JobState.SUSPENDED: Chip("Paused", "pause-fill", "wait"),
    JobState.COMPLETING: Chip("Ending", "stop-fill", "quiet"),
    JobState.COMPLETED: Chip("Completed", "check-lg", "quiet"),
    JobState.CANCELLED: Chip("Cancelled", "x-lg", "quiet"),
    JobState.FAILED: Chip("Failed", _BAD, "bad"),
    JobState.TIMEOUT: Chip("Time limit", "alarm", "bad"),
    JobState.DEADLINE: Chip("Deadline", "alarm", "bad"),
    JobState.OUT_OF_MEMORY: Chip("Out of memory", _BAD, "bad"),
    JobState.NODE_FAIL: Chip("Node failure", _BAD, "bad"),
    JobState.BOOT_FAIL: Chip("Node did not boot", _BAD, "bad"),
    JobState.PREEMPTED: Chip("Preempted", "stop-fill", "bad"),
}
UNKNOWN = Chip("Unknown", "question-lg", "wait")


@dataclass(frozen=True)
class JobView:
    """One row of the Jobs page: a job, an array, or a task of one."""

    row: JobRow
    data: JobOut
    """The API's response model, so that pages and API never disagree."""
    person: Person
    session_name: str | None = None
    """The name of the session that it runs, if it still exists."""

    @property
    def job(self) -> Job:
        """The job; of an array, one of its tasks."""
        return self.row.job

    @property
    def key(self) -> str:
        """The number for addresses and actions; the array's for all its tasks."""
        return self.data.id

    @property
    def element(self) -> str:
        """The id of its element in the page, where it stands once."""
        kind = "a" if self.row.is_array else "j"
        return f"{kind}-{self.job.array_id if self.row.is_array else self.job.id}"

    @property
    def title(self) -> str:
        """Its name, or its session's; Slurm tells the name a little later than the job."""
        return self.session_name or self.data.name or f"job {self.data.id}"

    @property
    def called(self) -> str:
        """How it is called in texts: names repeat."""
        return called(self.session_name or self.data.name, self.key)

    @property
    def in_question(self) -> str:
        """How a dialog names it."""
        name, array = self.called, self.row.is_array
        return in_question(name, self.data.owner, self.person.name, array=array)

    @property
    def own(self) -> bool:
        """Whether it is the reader's."""
        return self.data.owner == self.person.name

    @property
    def chip(self) -> Chip:
        """How its state is shown."""
        code = self.data.reason.code if self.data.reason else ""
        if self.job.gone:
            return UNKNOWN
        return REASON_CHIPS.get(code) or CHIPS[self.job.report.state]

    @property
    def task_chips(self) -> list[tuple[Chip, int]]:
        """Of an array: its tasks by state, in the order in which tasks pass through them."""
        states = self.row.states
        return [(CHIPS[state], states[state]) for state in JobState if states.get(state)]

    @property
    def tasks(self) -> int:
        """Of an array: the number of its tasks on this tab."""
        return sum(self.row.states.values())

    @property
    def actions(self) -> tuple[JobAction, ...]:
        """What can be done to it here."""
        return offered(self.job, self.row.states)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.job.report.state.over

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Its resources beside memory, of one task: label and text."""
        has = self.data.resources
        found = [("CPU", plural(has.cpus, "core"))]
        if has.nodes > 1:
            found.append(("Nodes", f"{has.nodes} nodes"))
        if has.gpus:
            found.append(("GPUs", plural(has.gpus, "GPU")))
        if has.shards and has.fgpu is None:
            found.append(("GPU", plural(has.shards, "GPU shard")))
        return found

    @property
    def fgpu(self) -> float | None:
        """Its share of a GPU in fGPU, if it has one."""
        return self.data.resources.fgpu if self.data.resources.shards else None


def job_views(person: Person, rows: Sequence[JobRow]) -> list[JobView]:
    """The view models of rows."""
    names = _session_names(person, (row.job for row in rows))
    return [
        JobView(row, data, person, names.get(row.job.session or ""))
        for row, data in zip(rows, row_responses(rows), strict=True)
    ]


def _session_names(person: Person, jobs: Iterable[Job]) -> dict[str, str]:
    """The names of the jobs' sessions by id, in one query."""
    ids = {job.session for job in jobs if job.session}
    return services().sessions.names(person, ids) if ids else {}
