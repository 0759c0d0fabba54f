"""Which part of the portal is ready, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from portal.core.cluster.usage import SlurmStatus
from portal.core.monitoring import (
    LOOK,
    WORKER,
    Part,
    Room,
    disk_part,
    slurm_part,
    summary,
    worker_part,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WELL = SlurmStatus(NOON, None)


def ago(seconds: float) -> datetime:
    return NOON - timedelta(seconds=seconds)


def test_the_worker_is_judged_by_its_sign_of_life() -> None:
    assert worker_part({WORKER: ago(29)}, NOON).ok
    late = worker_part({WORKER: ago(31)}, NOON)
    assert (late.ok, late.text) == (False, "not running: its last sign of life is 31 s old")
    assert "has not run yet" in worker_part({}, NOON).text
    assert worker_part({WORKER: ago(-5)}, NOON).text == "last sign of life 0 s ago"


def test_slurm_is_not_blamed_for_the_worker() -> None:
    beats = {WORKER: ago(40), LOOK: ago(40)}
    part = slurm_part(SlurmStatus(ago(40), ago(50)), beats, NOON)
    assert (part.ok, part.text) == (
        False,
        "not known: the worker, which looks at it, is not running",
    )


def test_slurm_fails_if_it_does_not_answer_or_a_look_does_not_end() -> None:
    assert slurm_part(WELL, {WORKER: NOON, LOOK: ago(2)}, NOON).ok
    failing = slurm_part(SlurmStatus(ago(90), ago(60)), {WORKER: NOON, LOOK: ago(2)}, NOON)
    assert failing.text == "no answer since 2026-11-20T11:59:00Z"
    hangs = slurm_part(WELL, {WORKER: NOON, LOOK: ago(45)}, NOON)
    assert hangs.text == "the last look ended 45 s ago: the worker waits for Slurm's answer"
    assert not slurm_part(WELL, {WORKER: NOON}, NOON).ok


def test_the_disk() -> None:
    assert disk_part(Room(300 << 20, 1 << 30, 5, 10), 200).ok
    full = disk_part(Room(100 << 20, 1 << 30), 200)
    assert full.text == "100 MiB of 1024 MiB free; monitoring.free_mb asks for 200"
    assert not disk_part(Room(300 << 20, 1 << 30, 0, 10), 200).ok
    assert disk_part(Room(300 << 20, 1 << 30, 0, 0), 200).ok, "btrfs counts no inodes"


def test_the_line_for_everybody_names_parts_only() -> None:
    parts = [Part("database", True, "x"), Part("worker", False, "y"), Part("disk", False, "z")]
    assert summary(parts) == "not ready: worker, disk"
    assert summary(parts[:1]) == "ok"
