"""Which field is named for what Slurm refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portal.core.cluster.choice.problems import RequestedJob, choice_problems
from portal.core.cluster.limits import (
    Association,
    Limits,
    Qos,
    Tres,
)
from portal.core.slurm_options import SlurmOptions
from tests.support.limits import LIMITS, NOW


def fields(partition: str, limits: Limits = LIMITS, count: int = 1, **chosen: Any) -> list[str]:
    """The fields that are refused."""
    asked = RequestedJob(SlurmOptions(**chosen), cpus=1, memory_mb=1024, count=count)
    groups = frozenset({"users"})
    found = choice_problems("alice", partition, asked, limits, groups, NOW)
    return [one.field for one in found]


@pytest.mark.parametrize(
    ("partition", "asked", "wrong"),
    [
        ("main", {}, []),
        ("off", {}, []),  # it waits
        ("main", {"account": "bio"}, []),
        ("main", {"account": "chemistry"}, ["account"]),
        ("bio", {"account": "physics"}, ["account"]),
        ("main", {"account": "bio", "qos": "big"}, ["qos"]),
        ("main", {"qos": "none"}, ["qos"]),
        ("main", {"qos": "big"}, ["resources.cpus"]),
        ("main", {"reservation": "course"}, []),
        ("main", {"reservation": "course", "account": "bio"}, ["reservation"]),
        ("main", {"reservation": "bobs"}, ["reservation"]),
        ("main", {"reservation": "past"}, ["reservation"]),
        ("main", {"reservation": "there"}, ["reservation"]),
        ("main", {"reservation": "missing"}, ["reservation"]),
        ("booked", {}, ["reservation"]),
        ("booked", {"reservation": "there"}, []),
        ("main", {"constraint": "zen4"}, []),
        ("main", {"constraint": "cray"}, ["constraint"]),
        ("staff", {}, ["resource_group"]),
        ("old", {}, ["resource_group"]),
        ("admin", {}, ["resource_group"]),
        ("shared", {"exclusive": True}, ["exclusive"]),
        ("main", {"exclusive": True}, []),
    ],
)
def test_the_refused_field(partition: str, asked: dict[str, Any], wrong: list[str]) -> None:
    assert fields(partition, **asked) == wrong


def test_what_slurm_hides_or_does_not_enforce_is_left_to_slurm() -> None:
    hidden = replace(LIMITS, private=("reservations",), enforced=())
    assert fields("main", hidden, reservation="missing", account="chemistry") == []


@pytest.mark.parametrize("flags", [(), ("DenyOnLimit",)])
def test_what_a_qos_never_starts_is_refused_with_deny_on_limit_and_without(
    flags: tuple[str, ...],
) -> None:
    big = Qos("big", flags, least=Tres(cpus=4, memory_mb=4096, gpus=1))
    limits = replace(LIMITS, qos=(Qos("normal"), big))
    asked = RequestedJob(SlurmOptions(qos="big"), cpus=3, memory_mb=1024)
    found = choice_problems("alice", "main", asked, limits)
    assert [(one.field, one.message) for one in found] == [
        (
            "resources.cpus",
            "a session needs at least 4 cores (QOS big, MinTRES); with less it never starts",
        ),
        (
            "resources.memory",
            "a session needs at least 4 GB (QOS big, MinTRES); with less it never starts",
        ),
        ("resources.fgpu", "a session needs a GPU (QOS big, MinTRES); without one it never starts"),
    ]


def test_no_more_sessions_at_once_than_may_be_submitted() -> None:
    few = replace(LIMITS, associations=(Association("physics", "alice", submitted=2),))
    assert fields("main", few, count=3) == ["count"]
    assert fields("main", few, count=2) == []


def test_nothing_is_launched_where_no_cgroups_confine_jobs() -> None:
    bare = replace(LIMITS, fenced=False)
    (one,) = choice_problems("alice", "main", RequestedJob(SlurmOptions(), 1, 1024), bare)
    assert one.field == "resource_group" and "no cgroups" in one.message
