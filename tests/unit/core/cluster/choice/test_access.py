"""Access to partitions by Unix group."""

from __future__ import annotations

from portal.core.cluster.choice.access import in_groups
from portal.core.cluster.limits import Limits, PartitionAccess

LIMITS = Limits(partitions=(PartitionAccess("staff", groups=("staff",)), PartitionAccess("main")))


def test_unknown_groups_are_left_to_slurm() -> None:
    assert in_groups("staff", LIMITS, None)
    assert in_groups("staff", LIMITS, frozenset({"staff"}))
    assert not in_groups("staff", LIMITS, frozenset())
    assert in_groups("main", LIMITS, frozenset())
