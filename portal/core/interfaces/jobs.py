"""Interfaces to Slurm's jobs and to the submission of jobs on the login node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from portal.core.jobs.actions import JobAction
from portal.core.jobs.compose.command import SubmitCommand
from portal.core.jobs.job import Job, JobTexts
from portal.core.jobs.job_usage import EndedUse, StepUse

MOST_NAMED = 500
"""Jobs whose texts are read by name. squeue loads the whole queue, and compares each of its jobs
with each that is named: with 2,000 of 50,000 a hundred million times, which costs more than
printing all of them."""


class JobMeter(Protocol):
    """Slurm's measurements of one job. Raises Unavailable when Slurm does not answer."""

    def running(self, job: Job) -> Sequence[StepUse]:
        """The running steps of a job, queried as its owner; [] if there are none."""
        ...

    def ended(self, job: Job) -> EndedUse | None:
        """Accounting's record of a job that is over; None until it contains its end."""
        ...


class JobScheduler(Protocol):
    """Slurm, for jobs of all users. Methods raise Unavailable when Slurm does not answer."""

    def find(self, job_id: str) -> Job | None:
        """The current state of a job in Slurm's memory."""
        ...

    def texts(self, job_ids: Collection[str]) -> dict[str, JobTexts]:
        """Texts of these jobs' owners, by number; without jobs that left the queue.

        For more than MOST_NAMED the texts of all jobs are read. Raises OutcomeUnknown if they take
        too long, or are too large.
        """
        ...

    def ended(self, job_ids: Collection[str]) -> dict[str, Job]:
        """Accounting's records of these jobs, by number; without unknown ones."""
        ...

    def history(self, since: datetime, until: datetime) -> list[Job]:
        """Accounting's records of all jobs of all users that ended in a span of time."""
        ...

    def act(self, user: str, action: JobAction, targets: Sequence[str]) -> dict[str, str]:
        """Hold, release or requeue a user's jobs, arrays or tasks, as that user.

        Returns "" for each target that Slurm accepted, else the reason for its refusal.
        """
        ...


class Submitter(Protocol):
    """`slipway sbatch` on the login node, as a user. Methods raise Unavailable."""

    def submit(self, user: str, command: SubmitCommand) -> str:
        """Submit a job and return its number.

        Raises SubmissionRefused with sbatch's words, HomeUnusable, OutcomeUnknown if the answer
        was lost.
        """
        ...

    def check(self, user: str, command: SubmitCommand) -> str:
        """What sbatch --test-only says, its times in UTC; raises SubmissionRefused."""
        ...

    def read_script(self, user: str, path: str) -> bytes:
        """A file that may be a script, up to core/jobs/compose/submission.py's MAX_SCRIPT.

        Raises ScriptUnreadable with the reason.
        """
        ...

    def stored_script(self, user: str, job_id: str) -> bytes:
        """The script of one of the user's jobs, as Slurm stores it.

        Raises ScriptUnreadable, for example if Slurm has forgotten the job.
        """
        ...
