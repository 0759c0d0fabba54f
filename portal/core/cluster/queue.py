"""Slurm's queue: positions of jobs in it, and selections of jobs that limits count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from portal.core.cluster.job_reports import JobReport, JobState

QUEUE_REASONS = frozenset({None, "None", "Priority", "Resources"})
"""Pending reasons for which the queue position is meaningful."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class QueuePart:
    """The jobs that a limit on submitted jobs counts; None matches all values."""

    user: str | None = None
    accounts: frozenset[str] | None = None
    qos: str | None = None
    of_qos: frozenset[str] = frozenset()
    """The partitions with this QOS: their jobs count as well, whatever QOS they have."""
    partitions: frozenset[str] | None = None


def queue_positions(jobs: Iterable[JobReport]) -> dict[str, int]:
    """Number of jobs ahead of each job that waits for its turn, by job id.

    Slurm sorts by priority in each partition, then by submission time; small jobs may start
    earlier (backfill). Sorted once for all jobs: a busy site has thousands pending.
    """
    queues: dict[str, list[JobReport]] = defaultdict(list)
    for job in jobs:
        if _waits_for_turn(job):
            queues[job.partition].append(job)
    return {
        job.job_id: number
        for queue in queues.values()
        for number, job in enumerate(sorted(queue, key=_sort_key))
    }


def _waits_for_turn(job: JobReport) -> bool:
    # Slurm holds a job by priority 0.
    return job.state is JobState.PENDING and job.reason in QUEUE_REASONS and job.priority > 0


def _sort_key(job: JobReport) -> tuple[int, datetime, int, str]:
    return -job.priority, job.submitted or _EARLIEST, len(job.job_id), job.job_id
