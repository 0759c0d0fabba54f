"""View models of jobs: labels, icons and figures for the templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from portal.core.auth.person import Person
from portal.core.cluster.job_reports import JobState
from portal.core.jobs.actions import JobAction
from portal.core.jobs.job import Job
from portal.core.jobs.offers import offered
from portal.core.jobs.query import JobRow
from portal.core.session.status import SOON
from portal.core.units import plural
from portal.web.api.jobs.responses import row_responses
from portal.web.api.models.jobs import JobOut
from portal.web.context import services, shown_until
from portal.web.pages.jobs.words import dialog_label, job_label
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
NEAR = 10
"""Jobs ahead of one of which a change is shown sooner."""
LATER = timedelta(seconds=30)
"""Longest age of the places of the others."""
UNKNOWN = Chip("Unknown", "question-lg", "wait")


@dataclass(frozen=True)
class JobView:
    """A row of the Jobs page: a job, an array, or a task of an array."""

    row: JobRow
    data: JobOut
    """The API's response model, so that pages and API agree."""
    person: Person
    session_name: str | None = None
    """The name of its session, if that still exists."""

    @property
    def job(self) -> Job:
        """The job; for an array, one of its tasks."""
        return self.row.job

    @property
    def key(self) -> str:
        """The job number for addresses and actions; the array's number for an array."""
        return self.data.id

    @property
    def element(self) -> str:
        """The unique id of its element in the page."""
        kind = "a" if self.row.is_array else "j"
        return f"{kind}-{self.job.array_id if self.row.is_array else self.job.id}"

    @property
    def title(self) -> str:
        """The name of the session or the job; the number until Slurm has reported the name."""
        return self.session_name or self.data.name or f"job {self.data.id}"

    @property
    def label(self) -> str:
        """Name and number for texts, since names are not unique."""
        return job_label(self.session_name or self.data.name, self.key)

    @property
    def dialog_label(self) -> str:
        """The label with owner and tasks, for dialogs."""
        name, array = self.label, self.row.is_array
        return dialog_label(name, self.data.owner, self.person.name, array=array)

    @property
    def is_own(self) -> bool:
        """Whether the reader is its owner."""
        return self.data.owner == self.person.name

    @property
    def chip(self) -> Chip:
        """The chip of its state."""
        code = self.data.reason.code if self.data.reason else ""
        if self.job.gone:
            return UNKNOWN
        return REASON_CHIPS.get(code) or CHIPS[self.job.report.state]

    @property
    def task_chips(self) -> list[tuple[Chip, int]]:
        """Of an array: its tasks by state, in the order of a job's life."""
        states = self.row.states
        return [(CHIPS[state], states[state]) for state in JobState if states.get(state)]

    @property
    def tasks(self) -> int:
        """Of an array: the number of its tasks on this tab."""
        return sum(self.row.states.values())

    @property
    def actions(self) -> tuple[JobAction, ...]:
        """The actions that are offered for it."""
        return offered(self.job, self.row.states)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.job.report.state.over

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Its resources except memory (for arrays, of one task): label and text."""
        resources = self.data.resources
        figures = [("CPU", plural(resources.cpus, "core"))]
        if resources.nodes > 1:
            figures.append(("Nodes", f"{resources.nodes} nodes"))
        if resources.gpus:
            figures.append(("GPUs", plural(resources.gpus, "GPU")))
        if resources.shards and resources.fgpu is None:
            figures.append(("GPU", plural(resources.shards, "GPU shard")))
        return figures

    @property
    def fgpu(self) -> float | None:
        """Its share of a GPU in fGPU, if it has one."""
        return self.data.resources.fgpu if self.data.resources.shards else None


def job_views(person: Person, rows: Sequence[JobRow]) -> list[JobView]:
    """The view models of rows."""
    names = _session_names(person, (row.job for row in rows))
    answers = row_responses(rows)
    places = [data.reason.ahead for data in answers if data.reason is not None]
    if nearest := [place for place in places if place is not None]:
        # Everybody's jobs move them, and a user's counts of changes do not have these.
        shown_until(services().clock() + (SOON if min(nearest) <= NEAR else LATER))
    return [
        JobView(row, data, person, names.get(row.job.session or ""))
        for row, data in zip(rows, answers, strict=True)
    ]


def _session_names(person: Person, jobs: Iterable[Job]) -> dict[str, str]:
    """The names of the jobs' sessions by id, in one query."""
    ids = {job.session for job in jobs if job.session}
    return services().sessions.names(person, ids) if ids else {}
