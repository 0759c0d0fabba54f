"""Where a job stands in Slurm's queue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from portal.core.job import JobReport, JobState

_IN_LINE = frozenset({None, "None", "Priority", "Resources"})
"""Reasons that are about one's turn; with any other, nobody's place in the line matters."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def ahead(job: JobReport, jobs: Iterable[JobReport]) -> int | None:
    """How many jobs are taken up before this one, as far as anybody can tell.

    Slurm goes by priority in each partition, then by time of submission; small jobs may slip
    through earlier (backfill). None when this job does not stand in the line.
    """
    if not _waits_in_line(job):
        return None
    place = _place(job)
    return sum(
        other.partition == job.partition and _waits_in_line(other) and _place(other) < place
        for other in jobs
    )


def _waits_in_line(job: JobReport) -> bool:
    # Priority 0 is how Slurm holds a job.
    return job.state is JobState.PENDING and job.reason in _IN_LINE and job.priority > 0


def _place(job: JobReport) -> tuple[int, datetime, int, str]:
    return -job.priority, job.submitted or _EARLIEST, len(job.job_id), job.job_id
