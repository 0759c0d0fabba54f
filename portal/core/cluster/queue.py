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
_Place = tuple[int, datetime, int, str]


@dataclass(frozen=True)
class QueuePart:
    """The jobs that a limit on submitted jobs counts; None matches all values."""

    user: str | None = None
    accounts: frozenset[str] | None = None
    qos: str | None = None
    of_qos: frozenset[str] = frozenset()
    """The partitions with this QOS: their jobs count as well, whatever QOS they have."""
    partitions: frozenset[str] | None = None


def queue_positions(jobs: Iterable[JobReport], of: Iterable[JobReport]) -> dict[str, int]:
    """Number of jobs ahead of each job of `of` that waits for its turn, by job id.

    Slurm sorts by priority in each partition, then by submission time; small jobs may start
    earlier (backfill). Only the few jobs of `of` are sorted: a busy site has thousands pending.
    """
    places: dict[str, list[_Place]] = defaultdict(list)
    for job in filter(_waits_for_turn, of):
        places[job.partition].append(_sort_key(job))
    for queue in places.values():
        queue.sort()
    first = {partition: [place[0] for place in queue] for partition, queue in places.items()}
    # By partition: how many jobs are ahead of the places from an index on, not of those before it.
    ahead = {partition: [0] * (len(queue) + 1) for partition, queue in places.items()}
    for job in jobs:
        if job.partition in places and _waits_for_turn(job):
            # Few have the priority of another, so that most are compared by this number alone.
            numbers, number = first[job.partition], -job.priority
            index = bisect_left(numbers, number)
            if index < len(numbers) and numbers[index] == number:
                index = bisect_right(places[job.partition], _sort_key(job))
            ahead[job.partition][index] += 1
    return {
        place[-1]: number
        for partition, queue in places.items()
        for place, number in zip(queue, accumulate(ahead[partition]), strict=False)
    }


def _waits_for_turn(job: JobReport) -> bool:
    # Slurm holds a job by priority 0.
    return job.state is JobState.PENDING and job.reason in QUEUE_REASONS and job.priority > 0


def _sort_key(job: JobReport) -> _Place:
    return -job.priority, job.submitted or _EARLIEST, len(job.job_id), job.job_id
