"""Places in Slurm's queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from portal.core.job import JobReport, JobState
from portal.core.queue import ahead

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def job(number: int, priority: int = 10, **changes: object) -> JobReport:
    """A job that waits for its turn; later numbers were submitted later."""
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


def test_priority_first_then_time() -> None:
    jobs = [job(1), job(2, 50), job(3), job(4, 5)]
    assert [ahead(each, jobs) for each in jobs] == [1, 0, 2, 3]


def test_only_those_who_wait_in_the_same_line_count() -> None:
    me = job(9, reason="Resources")
    others = [
        job(1, partition="big"),
        job(2, state=JobState.RUNNING),
        job(3, 0, reason="JobHeldUser"),
        job(4, reason="QOSMaxCpuPerUserLimit"),
        job(5),
    ]
    assert ahead(me, [me, *others]) == 1


def test_a_job_that_no_place_would_help_has_none() -> None:
    assert ahead(job(1, reason="QOSMaxCpuPerUserLimit"), []) is None
    assert ahead(job(1, 0, reason="None"), []) is None
    assert ahead(job(1, state=JobState.RUNNING), []) is None
