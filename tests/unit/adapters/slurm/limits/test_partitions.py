"""Who may use a partition, from single lines."""

from __future__ import annotations

import pytest

from portal.adapters.slurm.limits.partitions import entries_parse
from portal.core.cluster.limits import PartitionAccess, Tres


def test_access_to_partitions() -> None:
    line = (
        "PartitionName=gpu AllowAccounts=physics,bio AllowQos=ALL DenyQos=debug QoS=gpu-qos "
        "MaxCPUsPerNode=12 MaxMemPerNode=64000\n"
    )
    assert list(entries_parse(line)) == [
        PartitionAccess("gpu", "gpu-qos", ("physics", "bio"), (), (), ("debug",), Tres(12, 64_000))
    ]


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("DefaultTime=01:00:00", 60),
        ("DefaultTime=1-12:00:00", 2160),
        ("DefaultTime=NONE", None),
        ("DefaultTime=UNLIMITED", None),
        ("", None),
    ],
)
def test_the_time_limit_of_jobs_that_name_none(text: str, minutes: int | None) -> None:
    line = f"PartitionName=main AllowAccounts=ALL {text} MaxTime=08:00:00\n"
    (entry,) = entries_parse(line)
    assert entry.default_minutes == minutes


@pytest.mark.parametrize(
    ("text", "user", "oversubscribe"),
    [
        ("ExclusiveUser=YES OverSubscribe=NO", True, "NO"),
        ("Exclusive=USER OverSubscribe=NO", True, "NO"),
        ("Exclusive=NODE OverSubscribe=NO", False, "EXCLUSIVE"),
        ("ExclusiveUser=NO OverSubscribe=EXCLUSIVE", False, "EXCLUSIVE"),
    ],
)
def test_exclusive_nodes(text: str, user: bool, oversubscribe: str) -> None:
    (entry,) = entries_parse(f"PartitionName=main {text}\n")
    assert (entry.exclusive_user, entry.oversubscribe) == (user, oversubscribe)


def test_a_value_that_looks_like_a_field_replaces_none() -> None:
    (entry,) = entries_parse("PartitionName=main AllowGroups=users State=UP x State=DOWN\n")
    assert (entry.groups, entry.state) == (("users",), "UP x")
