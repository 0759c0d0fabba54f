"""Where a job stands in Slurm's queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from portal.core.cluster.jobs import JobReport, JobState

_IN_LINE = frozenset({None, "None", "Priority", "Resources"})
"""Reasons that are about one's turn; with any other, nobody's place in the line matters."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def queue_positions(jobs: Iterable[JobReport]) -> dict[str, int]:
    """How many jobs are taken up before each one that stands in the line, by job id.

    Slurm goes by priority in each partition, then by time of submission; small jobs may slip
    through earlier (backfill). Sorted once for all: a busy site has thousands of jobs waiting.
    """
    lines: dict[str, list[JobReport]] = defaultdict(list)
    for job in jobs:
        if _waits_in_line(job):
            lines[job.partition].append(job)
    return {
        job.job_id: number
        for line in lines.values()
        for number, job in enumerate(sorted(line, key=_place))
    }


def _waits_in_line(job: JobReport) -> bool:
    # Priority 0 is how Slurm holds a job.
    return job.state is JobState.PENDING and job.reason in _IN_LINE and job.priority > 0


def _place(job: JobReport) -> tuple[int, datetime, int, str]:
    return -job.priority, job.submitted or _EARLIEST, len(job.job_id), job.job_id
