"""What can be done to jobs, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from portal.core.cluster.jobs import JobState
from portal.core.jobs.job import Job

MAX_SINGLE = 50
"""Jobs held, released or requeued by one request: Slurm answers one command for each."""


class JobAction(StrEnum):
    """What the owner of a job, or an administrator, can do to it."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"


@dataclass(frozen=True)
class JobOutcome:
    """What became of an action on one job."""

    id: str
    """The number as it was given: of a record, of an array, or as Slurm shows it."""
    done: bool
    text: str
    """In words, for pages: "Cancelled.", "Job 12 has ended already."."""


@dataclass(frozen=True)
class Asked:
    """One number of a request: a job, an array with its tasks, or a task."""

    id: str
    jobs: tuple[Job, ...]
    """Never empty; all of one owner."""
    target: str
    """How Slurm's commands are told."""

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.jobs[0].report.user

    @property
    def name(self) -> str:
        """What its owner called it."""
        return self.jobs[0].texts.name

    @property
    def title(self) -> str:
        """As pages show it."""
        first = self.jobs[0]
        return first.array_id if self.is_array else first.shown_id

    @property
    def is_array(self) -> bool:
        """Whether it is a whole array."""
        return bool(self.jobs[0].array_id) and self.target == self.jobs[0].array_id


def asked_about(given: str, found: Sequence[Job]) -> Asked:
    """What a number of a request refers to, of the jobs that the store has for it."""
    tasks = tuple(job for job in found if job.array_id == given)
    if tasks:
        return Asked(given, tasks, given)
    job = found[0]
    if job.het_id:  # Slurm acts on all of its parts together
        return Asked(given, (job,), job.het_id)
    if not job.array_id:
        return Asked(given, (job,), job.id)
    one = given.partition("_")[2] if "_" in given else job.tasks
    whole = not one.isdecimal()
    return Asked(given, (job,), job.array_id if whole else f"{job.array_id}_{one}")


HELD = "JobHeldUser"
_HELD_BY_ADMIN = "JobHeldAdmin"
_RUNS = frozenset({JobState.CONFIGURING, JobState.RUNNING, JobState.SUSPENDED})


def targets(action: JobAction, asked: Asked) -> list[str]:
    """What Slurm is told to act on: of an array that is requeued, each task that runs."""
    if action is not JobAction.REQUEUE or not asked.is_array:
        return [asked.target]
    running = (job for job in asked.jobs if job.report.state in _RUNS)
    return [f"{job.array_id}_{job.tasks}" for job in running if job.tasks.isdecimal()]


def refusal(action: JobAction, asked: Asked) -> str:
    """Why this cannot be done; "" if Slurm is to be asked."""
    title = f"{'Array' if asked.is_array else 'Job'} {asked.title}"
    states = {job.report.state for job in asked.jobs}
    reasons = {job.report.reason for job in asked.jobs if job.report.state is JobState.PENDING}
    if any(job.session for job in asked.jobs):
        return f"{title} runs a session. Find it on the Sessions page."
    if all(state.over for state in states):
        return f"{title} has ended already."
    if all(job.gone for job in asked.jobs):
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


DONE = {
    JobAction.CANCEL: "Cancelled.",
    JobAction.HOLD: "On hold.",
    JobAction.RELEASE: "Released.",
    JobAction.REQUEUE: "Requeued.",
}
