"""Whether a watchdog watches, as others of root's programs see it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.gpu.watchdog.heartbeat import OFTEN, SILENT, SPAN, Heartbeat, problem
from portal.node.gpu.watchdog.lock import lock
from tests.unit.node.gpu.watchdog.conftest import Node

GONE = "the GPU watchdog does not run"
SILENCE = "the GPU watchdog has made no complete measurement for more than 30 s"
RESTARTS = "the GPU watchdog was started more than 5 times in 10 minutes"


class Clock:
    """The machine's monotonic clock."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Path]:
    """A folder of jobs, and a watchdog that holds the lock."""
    folder = tmp_path / "gpu" / "jobs"
    held = lock(folder)
    assert held is not None
    with held:
        yield folder


def test_a_watchdog_that_is_not_there(tmp_path: Path) -> None:
    Heartbeat(tmp_path / "jobs").start()
    assert problem(tmp_path / "jobs") == GONE


def test_a_watchdog_that_measures_nothing(jobs: Path) -> None:
    clock = Clock()
    assert problem(jobs, clock) == SILENCE  # it has left no sign at all
    heart = Heartbeat(jobs, clock)
    heart.start()
    assert problem(jobs, clock) == ""
    for seconds, why in ((SILENT, ""), (0.1, ""), (0.1, SILENCE)):
        clock.now = round(clock.now + seconds, 1)
        assert problem(jobs, clock) == why
    heart.beat()
    assert problem(jobs, clock) == ""


def test_a_watchdog_that_restarts_too_often(jobs: Path) -> None:
    clock = Clock()
    for number in range(OFTEN):
        clock.now = round(5000 + number * SPAN / OFTEN, 1)
        Heartbeat(jobs, clock).start()
        assert problem(jobs, clock) == ""
    clock.now = 5000 + SPAN + 0.05  # a tenth more or less is the same
    Heartbeat(jobs, clock).start()
    assert problem(jobs, clock) == RESTARTS
    clock.now += 0.2
    heart = Heartbeat(jobs, clock)
    assert problem(jobs, clock) == ""
    heart.start()
    assert problem(jobs, clock) == RESTARTS


def test_starts_of_before_a_reboot_do_not_count(jobs: Path) -> None:
    clock = Clock()
    for _ in range(OFTEN):
        Heartbeat(jobs, clock).start()
    clock.now = 20.0
    Heartbeat(jobs, clock).start()
    assert problem(jobs, clock) == ""


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b'{"starts": 3, "beat": 1}', b"[]"])
def test_an_unreadable_sign_is_none(jobs: Path, data: bytes) -> None:
    (jobs.parent / "watch" / "heartbeat").write_bytes(data)
    assert problem(jobs) == SILENCE
    Heartbeat(jobs).start()
    assert problem(jobs) == ""


def test_only_complete_measurements_are_signs(node: Node) -> None:
    node.job(12)
    held = lock(node.jobs)
    assert held is not None
    with held:
        node.look(1)
        assert problem(node.jobs) == ""
        file = node.jobs.parent / "watch" / "heartbeat"
        file.unlink()
        node.nvml.broken = {"GPU-0"}
        node.look(1)
        assert not file.exists()
        node.nvml.broken = set()
        node.look(1)
        assert problem(node.jobs) == ""
    assert file.parent.stat().st_mode & 0o077 == 0
