"""Interfaces to Slurm's measurements of jobs, and to the store for their pages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from portal.core.jobs.job import Job
from portal.core.jobs.output import Reading
from portal.core.jobs.usage import Ended, JobUsage, StepUse


class JobMeter(Protocol):
    """Slurm's measurements of one job. Raises Unavailable when Slurm does not answer."""

    def running(self, job: Job) -> Sequence[StepUse]:
        """The running steps of a job, queried as its owner; [] if there are none."""
        ...

    def ended(self, job: Job) -> Ended | None:
        """Accounting's record of a job that is over; None until it contains its end."""
        ...


class JobPageStore(Protocol):
    """What is kept about jobs that somebody looked at. Every method is one transaction."""

    def usage(self, job_id: str) -> JobUsage | None:
        """The use when Slurm was last asked."""
        ...

    def claim_usage(self, job_id: str, now: datetime, latest: datetime) -> bool:
        """Whether the caller is to ask Slurm now: nobody else has since `latest`."""
        ...

    def save_usage(self, job_id: str, usage: JobUsage) -> None:
        """Store what Slurm told."""
        ...

    def reading(self, job_id: str) -> Reading | None:
        """The last time that an administrator read the job's output."""
        ...

    def note_reading(self, job_id: str, reading: Reading, since: datetime) -> bool:
        """Store that an administrator reads it; False if the same one has since that time."""
        ...

    def forget(self, before: datetime) -> int:
        """Delete what was stored before a time; returns how many jobs' records."""
        ...
