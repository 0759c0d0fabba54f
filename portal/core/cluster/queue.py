"""Slurm's queue: positions of jobs in it, and selections of jobs that limits count."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate

from portal.core.cluster.job_reports import JobReport, JobState

QUEUE_REASONS = frozenset({None, "None", "Priority", "Resources"})
"""Pending reasons for which the queue position is meaningful."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_SortKey = tuple[int, datetime, int, str]


@dataclass(frozen=True)
class QueuePart:
    """The jobs that a limit on submitted jobs counts; None matches all values."""

    user: str | None = None
    accounts: frozenset[str] | None = None
    qos: str | None = None
    of_qos: frozenset[str] = frozenset()
    """The partitions with this QOS: their jobs count as well, whatever QOS they have."""
    partitions: frozenset[str] | None = None


def queue_positions(queue: Iterable[JobReport], jobs: Iterable[JobReport]) -> dict[str, int]:
    """Number of jobs in the queue ahead of each of `jobs` that waits for its turn, by job id.

    Slurm sorts by priority in each partition, then by submission time; small jobs may start
    earlier (backfill). Only the few `jobs` are sorted: a busy site has thousands pending.
    """
    keys: defaultdict[str, list[_SortKey]] = defaultdict(list)
    for job in filter(_waits_for_turn, jobs):
        keys[job.partition].append(_sort_key(job))
    for ordered in keys.values():
        ordered.sort()
    priorities = {partition: [key[0] for key in ordered] for partition, ordered in keys.items()}
    # By partition and index: jobs of the queue that are ahead of this key, but not of earlier ones.
    ahead = {partition: [0] * (len(ordered) + 1) for partition, ordered in keys.items()}
    for job in queue:
        if job.partition in keys and _waits_for_turn(job):
            # Priorities seldom agree: for most jobs comparing them is enough.
            sorted_priorities, priority = priorities[job.partition], -job.priority
            index = bisect_left(sorted_priorities, priority)
            if sorted_priorities[index : index + 1] == [priority]:
                index = bisect_right(keys[job.partition], _sort_key(job))
            ahead[job.partition][index] += 1
    return {
        job_id: position
        for partition, ordered in keys.items()
        for (*_, job_id), position in zip(ordered, accumulate(ahead[partition]), strict=False)
    }


def _waits_for_turn(job: JobReport) -> bool:
    # Slurm holds a job by priority 0.
    return job.state is JobState.PENDING and job.reason in QUEUE_REASONS and job.priority > 0


def _sort_key(job: JobReport) -> _SortKey:
    return -job.priority, job.submitted or _EARLIEST, len(job.job_id), job.job_id
