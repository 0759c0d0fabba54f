"""Actions on jobs, their targets and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job

MAX_SINGLE = 50
"""Jobs held, released or requeued by one request: Slurm answers one command for each."""


class JobAction(StrEnum):
    """An action on a job, by its owner or an administrator."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of an action on one job."""

    id: str
    """The number in the request: of a record, of an array, or as Slurm shows it."""
    done: bool
    text: str
    """In words, for pages: "Cancelled.", "Job 12 has ended already."."""


@dataclass(frozen=True)
class JobTarget:
    """One number of a request: a job, an array with its tasks, or a task."""

    id: str
    jobs: tuple[Job, ...]
    """Never empty; all of one owner."""
    target: str
    """The job id for Slurm's commands."""

    @property
    def owner(self) -> str:
        """The user who owns it."""
        return self.jobs[0].report.user

    @property
    def name(self) -> str:
        """The job's name."""
        return self.jobs[0].texts.name

    @property
    def title(self) -> str:
        """The number as pages show it."""
        first = self.jobs[0]
        return first.array_id if self.is_array else first.shown_id

    @property
    def is_array(self) -> bool:
        """Whether it is a whole array."""
        return bool(self.jobs[0].array_id) and self.target == self.jobs[0].array_id


def job_target(number: str, records: Sequence[Job]) -> JobTarget:
    """The target of a number in a request, from the records that the store has for it."""
    tasks = tuple(job for job in records if job.array_id == number)
    if tasks:
        return JobTarget(number, tasks, number)
    job = records[0]
    if job.het_id:  # Slurm acts on all of its parts together
        return JobTarget(number, (job,), job.het_id)
    if not job.array_id:
        return JobTarget(number, (job,), job.id)
    task = number.partition("_")[2] if "_" in number else job.tasks
    is_array = not task.isdecimal()
    return JobTarget(number, (job,), job.array_id if is_array else f"{job.array_id}_{task}")


HELD = "JobHeldUser"
_HELD_BY_ADMIN = "JobHeldAdmin"
_RUNS = frozenset({JobState.CONFIGURING, JobState.RUNNING, JobState.SUSPENDED})


def targets(action: JobAction, target: JobTarget) -> list[str]:
    """The ids for Slurm's commands; each running task of an array that is requeued."""
    if action is not JobAction.REQUEUE or not target.is_array:
        return [target.target]
    running = (job for job in target.jobs if job.report.state in _RUNS)
    return [f"{job.array_id}_{job.tasks}" for job in running if job.tasks.isdecimal()]


def refusal(action: JobAction, target: JobTarget) -> str:
    """Why the action is impossible; "" if it is sent to Slurm."""
    title = f"{'Array' if target.is_array else 'Job'} {target.title}"
    states = {job.report.state for job in target.jobs}
    reasons = {job.report.reason for job in target.jobs if job.report.state is JobState.PENDING}
    if any(job.session for job in target.jobs):
        return f"{title} runs a session. Find it on the Sessions page."
    if all(state.over for state in states):
        return f"{title} has ended already."
    if all(job.gone for job in target.jobs):
        return f"Slurm no longer knows {title[0].lower()}{title[1:]}."
    match action:
        case JobAction.HOLD if JobState.PENDING not in states:
            return f"{title} has started already, so it cannot be held."
        case JobAction.RELEASE if not reasons & {HELD, _HELD_BY_ADMIN}:
            return f"{title} is not on hold."
        case JobAction.RELEASE if HELD not in reasons:
            return f"An administrator holds {title[0].lower()}{title[1:]}. Ask the administrators."
        case JobAction.REQUEUE if not states & _RUNS:
            return f"{title} is not running."
        case _:
            return ""


SUCCESS_TEXTS = {
    JobAction.CANCEL: "Cancelled.",
    JobAction.HOLD: "On hold.",
    JobAction.RELEASE: "Released.",
    JobAction.REQUEUE: "Requeued.",
}
