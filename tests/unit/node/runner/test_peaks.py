"""The highest values between two reports."""

from __future__ import annotations

import json

from portal.core.session_job.runner_protocol import Heartbeat
from portal.node.runner.peaks import Peaks
from tests.support.clock import FakeClock


class Job:
    """A job whose use is set by the test."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.values: dict[str, object] = {"cpu_seconds": 0.0, "memory_bytes": 10, "busy": []}
        self.peaks = Peaks(lambda: dict(self.values), 5, lambda: self.clock().timestamp())

    def measure(self, seconds: float, **values: object) -> None:
        self.clock.advance(seconds=seconds)
        self.values |= values
        self.peaks.measure()


def test_a_short_computation_between_two_reports_is_reported() -> None:
    job = Job()
    job.peaks.report(detailed=True)
    job.peaks.clear()
    job.measure(10, cpu_seconds=5.0, memory_bytes=900, busy=["jupyterlab"], gpu_percent=40.0)
    job.measure(10, cpu_seconds=5.1, memory_bytes=20, busy=["terminal"], gpu_percent=None)
    job.clock.advance(seconds=10)
    report = job.peaks.report(detailed=True)
    assert report == {
        "cpu_seconds": 5.1,
        "memory_bytes": 20,
        "gpu_percent": None,
        "busy": ["jupyterlab", "terminal"],
        "peak_cpu_percent": 50.0,
        "peak_memory_bytes": 900,
        "peak_gpu_percent": 40.0,
    }
    assert Heartbeat.model_validate_json(json.dumps(report)).most_memory == 900


def test_what_was_not_delivered_is_reported_again_and_what_was_is_not() -> None:
    job = Job()
    job.measure(10, memory_bytes=900)
    job.values["memory_bytes"] = 20
    assert job.peaks.report(detailed=True)["peak_memory_bytes"] == 900
    assert job.peaks.report(detailed=True)["peak_memory_bytes"] == 900
    job.peaks.clear()
    assert job.peaks.report(detailed=True)["peak_memory_bytes"] == 20


def test_a_portal_of_an_earlier_release_gets_the_fields_that_it_knows() -> None:
    job = Job()
    job.measure(10, cpu_seconds=5.0, busy=["jupyterlab"])
    job.values["busy"] = []
    assert job.peaks.report(detailed=False) == job.values


def test_unknown_values_and_a_count_that_began_again_have_no_peak() -> None:
    job = Job()
    job.measure(10, cpu_seconds=None, memory_bytes=None)
    job.measure(10, cpu_seconds=7.0)
    job.measure(10, cpu_seconds=1.0)
    report = job.peaks.report(detailed=True)
    assert "peak_memory_bytes" not in report
    assert report["peak_cpu_percent"] == 0.0


def test_a_fraction_of_a_second_has_no_peak() -> None:
    """20 ms in a tenth of a second are 20 %; they count in the time until the next measurement."""
    job = Job()
    job.peaks.report(detailed=True)
    for _ in range(3):
        job.measure(10, cpu_seconds=0.1)
    job.measure(0.1, cpu_seconds=0.12)
    report = job.peaks.report(detailed=True)
    assert report["peak_cpu_percent"] == 1.0
    job.peaks.clear()
    job.measure(9.9, cpu_seconds=2.1)
    assert job.peaks.report(detailed=True)["peak_cpu_percent"] == 20.0
