"""Places in Slurm's queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import process_time

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.queue import queue_positions

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def job(number: int, priority: int = 10, **changes: object) -> JobReport:
    """A job waiting for its turn; higher numbers were submitted later."""
    values = {
        "job_id": str(number),
        "user": "alice",
        "state": JobState.PENDING,
        "reason": "Priority",
        "submitted": NOON + timedelta(seconds=number),
        "partition": "main",
        "priority": priority,
    }
    return JobReport(**{**values, **changes})  # type: ignore[arg-type]  # fields by name


def _all(jobs: list[JobReport]) -> dict[str, int]:
    return queue_positions(jobs, jobs)


def test_priority_first_then_time() -> None:
    assert _all([job(1), job(2, 50), job(3), job(4, 5)]) == {
        "1": 1,
        "2": 0,
        "3": 2,
        "4": 3,
    }


def test_only_jobs_of_the_same_queue_count() -> None:
    me = job(9, reason="Resources")
    others = [
        job(1, partition="big"),
        job(2, state=JobState.RUNNING),
        job(3, 0, reason="JobHeldUser"),
        job(4, reason="QOSMaxCpuPerUserLimit"),
        job(5),
    ]
    assert _all([me, *others]) == {"1": 0, "5": 0, "9": 1}


def test_a_job_whose_reason_is_not_its_turn_has_no_place() -> None:
    waiting = job(1, reason="QOSMaxCpuPerUserLimit")
    assert _all([waiting, job(2, 0, reason="None"), job(3, state=JobState.RUNNING)]) == {}


def test_ten_thousand_jobs_are_placed_quickly() -> None:
    began = process_time()
    found = _all([job(number, priority=number % 7 + 1) for number in range(10_000)])
    assert process_time() - began < 10.0  # comparing each with all others would take half a minute
    assert sorted(found.values()) == list(range(10_000))


def test_some_jobs_have_the_positions_that_they_have_among_all() -> None:
    jobs = [
        job(number, number * 7919 % 50, partition=f"p{number % 3}", submitted=NOON)
        for number in range(1, 500)
    ]
    everybody = _all(jobs)
    some = jobs[::7]
    assert queue_positions(jobs, some) == {
        one.job_id: everybody[one.job_id] for one in some if one.priority
    }
