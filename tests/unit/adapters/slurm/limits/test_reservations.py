"""Reservations from the output of real Slurm versions (tests/recorded/<version>/)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.adapters.slurm.limits.reservations import reservations_parse
from tests.support.recordings import VERSIONS, recorded


@pytest.mark.parametrize("version", VERSIONS)
def test_reservations(version: str) -> None:
    found = {one.name: one for one in reservations_parse(recorded(version, "reservations"))}
    assert set(found) == {"kürs-1", "odd r", "minus", "forever"}
    course, minus = found["kürs-1"], found["minus"]
    assert (course.users, course.nodes, course.active) == (("alice", "bob"), ("n1",), True)
    assert (course.accounts, course.partition, course.features) == ((), "", "")
    assert course.flags == ("OVERLAP", "SPEC_NODES")
    assert course.start and course.end and course.end - course.start == timedelta(hours=2)
    assert found["odd r"].not_accounts == ("research",) and not found["odd r"].active
    assert (minus.users, minus.not_users, minus.accounts) == ((), ("bob",), ("physics",))
    assert minus.partition == "short"
    assert found["forever"].features == "intel"


@pytest.mark.parametrize("version", VERSIONS)
def test_none(version: str) -> None:
    assert list(reservations_parse(recorded(version, "reservations-none"))) == []


def test_fields_of_newer_versions() -> None:
    line = (
        "ReservationName=r StartTime=1 EndTime=2 PartitionName=(null) AllowedPartitions=gpu "
        "QOS=high Groups=users Nodes=(null) State=ACTIVE\n"
    )
    (found,) = reservations_parse(line)
    assert (found.partition, found.qos, found.groups) == ("gpu", ("high",), ("users",))
