"""What a job uses and has used, from Slurm's figures of its steps, and in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job
from portal.core.jobs.job_usage import (
    END_EVERY,
    LIVE_EVERY,
    EndedUse,
    JobUsage,
    StepUse,
    advice,
    cpu_words,
    ended_usage,
    is_due,
    live_usage,
    memory_words,
    usage_of,
)

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GB = 2**30
RUNNING = Job(
    JobReport("7", "alice", JobState.RUNNING, nodes=("n1",), start=NOON, cpus=4, memory_mb=8 * 1024)
)
BATCH = StepUse("batch", 1, 60.0, 2 * GB, 3 * GB, "n1")


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def ended(*steps: StepUse, elapsed: float = 1000.0) -> JobUsage:
    return ended_usage(RUNNING, EndedUse(steps, 4, elapsed, 8 * 1024), later(2000))


def test_a_script_without_steps_of_its_own_is_known_since_its_start() -> None:
    use = live_usage(RUNNING, [BATCH], later(120), None)
    assert (use.cores_mean, use.cpu_share, use.cores_now) == (0.5, 0.125, None)
    assert (use.memory, use.peak, use.peak_node) == (2 * GB, 3 * GB, "n1")
    assert use.memory_share == 3 / 8
    assert cpu_words(use) == "So far it has kept 0.5 of its 4 cores busy on average."
    assert memory_words(use) == "It used at most 3 GB of 8 GB."


def test_two_measurements_tell_the_use_now() -> None:
    before = live_usage(RUNNING, [BATCH], later(120), None)
    now = live_usage(RUNNING, [replace(BATCH, cpu_seconds=90.0)], later(130), before)
    assert now.cores_now == 3.0
    beyond = live_usage(RUNNING, [replace(BATCH, cpu_seconds=900.0)], later(130), before)
    assert beyond.cores_now == 4.0


@pytest.mark.parametrize("case", ["too old", "another run", "a step ended", "not measured"])
def test_a_measurement_that_does_not_compare_tells_nothing(case: str) -> None:
    before = live_usage(RUNNING, [BATCH], later(120), None)
    match case:
        case "too old":
            before = replace(before, at=later(-300))
        case "another run":
            before = replace(before, start=later(-60))
        case "a step ended":
            before = replace(before, steps=("batch", "0"))
        case _:
            before = replace(before, cpu_seconds=None)
    assert live_usage(RUNNING, [BATCH], later(130), before).cores_now is None


def test_steps_that_ended_are_missing_so_there_is_no_mean_while_it_runs() -> None:
    use = live_usage(RUNNING, [BATCH, StepUse("3", 8, 80.0, 4 * GB, GB, "n2")], later(120), None)
    assert (use.cpu_seconds, use.memory, use.partial) == (140.0, 6 * GB, True)
    assert (use.cores_mean, cpu_words(use)) == (None, "")
    assert (use.peak, use.peak_tasks, use.all_peak, use.peak_node) == (GB, 8, 8 * GB, "n2")
    assert memory_words(use) == (
        "The largest of its 8 tasks (on n2) used at most 1 GB: all of them at most 8 GB of 8 GB."
    )


def test_what_it_used_and_what_would_have_done() -> None:
    use = ended(replace(BATCH, cpu_seconds=1000.0, peak=GB, memory=None))
    assert (use.final, use.cpu_share, use.memory_share) == (True, 0.25, 0.125)
    assert cpu_words(use) == "It kept 1 of its 4 cores busy on average."
    assert memory_words(use) == "It used at most 1 GB of 8 GB."
    assert advice(use) == (
        "2 cores and 1.5 GB of memory would have done: with less, the next one may start sooner."
    )


def test_no_advice_for_short_jobs_or_those_that_used_what_they_had() -> None:
    busy = replace(BATCH, cpu_seconds=3900.0, peak=7 * GB)
    assert advice(ended(busy)) == ""
    assert advice(ended(replace(BATCH, cpu_seconds=1.0), elapsed=100)) == ""
    assert advice(live_usage(RUNNING, [BATCH], later(3000), None)) == ""


def test_a_job_of_one_core_is_told_in_percent() -> None:
    use = replace(ended(replace(BATCH, cpu_seconds=960.0)), cores=1)
    assert cpu_words(use) == "It kept its core busy 96 % of the time."


def test_nothing_measured_is_nothing_said() -> None:
    use = ended()
    assert not use.measured
    assert (cpu_words(use), memory_words(use), advice(use)) == ("", "", "")


def test_when_slurm_is_asked() -> None:
    over = replace(RUNNING, report=replace(RUNNING.report, state=JobState.COMPLETED))
    waits = replace(RUNNING, report=JobReport("7", "alice", JobState.PENDING))
    never = replace(over, report=replace(over.report, start=None))
    live = live_usage(RUNNING, [BATCH], later(60), None)
    assert is_due(RUNNING, None) == is_due(RUNNING, live) == LIVE_EVERY
    assert is_due(over, live) == END_EVERY
    assert is_due(over, ended(BATCH)) is None
    assert [is_due(job, None) for job in (waits, never)] == [None, None]
    assert is_due(replace(RUNNING, gone=NOON), None) is None


def test_the_use_of_an_earlier_run_is_not_that_of_this_one() -> None:
    """A job that was requeued, or a number that Slurm uses again."""
    use = live_usage(RUNNING, [BATCH], later(60), None)
    again = replace(RUNNING, report=replace(RUNNING.report, start=later(600)))
    assert usage_of(RUNNING, use) is use
    assert usage_of(again, use) is None
