"""How many sessions of a launch start at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.core.cluster.job_reports import Estimate
from portal.core.cluster.meters import Meter, PartitionUsage
from portal.core.launch_estimate import fits_now, starts_at_once
from portal.core.session.session import Session

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def session(fgpu: float | None = None) -> Session:
    """One core, 1 GB."""
    return Session(
        id="1" * 32,
        batch="1" * 32,
        name="one",
        owner="alice",
        environment="python",
        version="3.13",
        cpus=1,
        memory_mb=1024,
        fgpu=fgpu,
        created=NOW,
        submitted=NOW,
        token_hash="",
    )


def free(cpus: int | None, memory: int, fgpu: float | None = None) -> PartitionUsage:
    """What its owner can get now."""
    gpu = None if fgpu is None else Meter(0.0, 4.0, fgpu)
    return PartitionUsage("main", ("main",), Meter(0, 9, cpus), Meter(0, 9999, memory), gpu)


@pytest.mark.parametrize(
    ("cpus", "memory", "count", "found"),
    [(3, 4096, 2, 2), (3, 2048, 3, 2), (0, 4096, 1, 0), (9, 500, 2, 0), (None, 4096, 1, None)],
)
def test_the_scarcest_resource_decides(
    cpus: int | None, memory: int, count: int, found: int | None
) -> None:
    assert fits_now(free(cpus, memory), session(), count) == found


def test_shares_of_a_gpu_count() -> None:
    assert fits_now(free(9, 9999, 0.3), session(0.1), 5) == 3
    assert fits_now(free(9, 9999), session(0.5), 1) is None


def test_without_usage_nothing_is_known() -> None:
    assert fits_now(None, session(), 1) is None


@pytest.mark.parametrize(("seconds", "soon"), [(-5, True), (30, True), (600, False)])
def test_a_start_within_a_minute_is_right_away(seconds: int, soon: bool) -> None:
    assert starts_at_once(Estimate(NOW + timedelta(seconds=seconds), "n1", ""), NOW) is soon
    assert not starts_at_once(None, NOW)
