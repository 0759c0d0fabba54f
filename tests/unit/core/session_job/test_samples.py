"""Use over time: bounded in number, exact in CPU time, and peaks are never lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.core.session_job.samples import (
    MOST,
    SECONDS,
    Reading,
    Sample,
    add_reading,
    at_most,
    thin,
    to_points,
)

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GB = 2**30


def reading(second: float, **values: object) -> Reading:
    """A heartbeat of a job that uses half a core."""
    given = {"cpu_seconds": second / 2, "memory": GB} | values
    return Reading.model_validate({"at": NOON + timedelta(seconds=second), **given})


def recorded(*readings: Reading) -> list[Sample]:
    """What is stored after these heartbeats, without thinning."""
    samples: list[Sample] = []
    for one in readings:
        sample = add_reading(samples[-1] if samples else None, one)
        samples = [*(s for s in samples if s.at != sample.at), sample]
    return samples


def test_reports_of_one_minute_are_one_sample_with_their_peak() -> None:
    found = recorded(reading(0, memory=GB), reading(10, memory=3 * GB), reading(50, memory=2 * GB))
    assert [(s.at, s.reports, s.memory, s.cpu_seconds) for s in found] == [(NOON, 3, 3 * GB, 25.0)]
    assert len(recorded(reading(0), reading(59), reading(60))) == 2


def test_gpu_use_is_the_mean_of_the_reports_that_have_one() -> None:
    found = recorded(
        reading(0, gpu_percent=10.0, gpu_memory=5),
        reading(10, gpu_percent=20.0, gpu_memory=9),
        reading(20, gpu_percent=60.0, gpu_memory=1),
        reading(60),
    )
    assert (found[0].gpu_percent, found[0].gpu_memory) == (30.0, 9)
    assert (found[1].gpu_percent, found[1].gpu_memory) == (None, None)


def test_thinning_halves_the_number_and_keeps_peak_and_cpu_time() -> None:
    found = recorded(*(reading(60 * n, memory=(n + 1) * GB) for n in range(10)))
    fewer = thin(found)
    assert len(fewer) == 5
    assert {s.seconds for s in fewer} == {2 * SECONDS}
    assert fewer[-1].memory == 10 * GB
    assert fewer[-1].cpu_seconds == found[-1].cpu_seconds
    assert [p.cpu_percent for p in to_points(fewer, NOON - timedelta(seconds=0), 1)][1:] == [50] * 4


@pytest.mark.parametrize("minutes", [10, 299, 301, 5000])
def test_points_never_exceed_the_count(minutes: int) -> None:
    found = recorded(*(reading(60 * n) for n in range(minutes)))
    assert len(at_most(found, MOST)) <= MOST
    assert at_most(found, MOST)[-1].until == found[-1].until


def test_a_clock_set_back_changes_the_last_sample_only() -> None:
    found = recorded(reading(600, memory=GB), reading(0, memory=2 * GB))
    assert [(s.at, s.memory) for s in found] == [(NOON + timedelta(minutes=10), 2 * GB)]


def test_cpu_use_is_per_span_and_no_more_than_the_cores() -> None:
    found = recorded(reading(30), reading(90), reading(150, cpu_seconds=1e9))
    points = to_points(found, NOON, cpus=2)
    assert [p.cpu_percent for p in points] == [50, 50, 200]


def test_a_requeued_job_counts_from_zero_again() -> None:
    found = recorded(reading(60, cpu_seconds=100.0), reading(120, cpu_seconds=3.0))
    assert [p.cpu_percent for p in to_points(found, NOON, 4)][1] is None
