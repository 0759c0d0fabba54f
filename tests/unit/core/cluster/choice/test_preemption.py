"""Sessions that others' jobs may end."""

from __future__ import annotations

from portal.core.cluster.choice.preemption import preemption
from portal.core.cluster.limits import Limits, NodeFeatures, PartitionAccess, Qos


def test_by_qos() -> None:
    both = (Qos("cheap", preempt_mode="cancel"), Qos("urgent", preempt=("cheap",)))
    found = Limits(qos=both, preempt_type="qos", preempt_mode="requeue")
    assert preemption("main", "cheap", found).startswith("It may be ended when")
    assert "urgent" in preemption("main", "cheap", found)
    assert preemption("main", "urgent", found) == ""


def test_by_partitions_that_share_a_node() -> None:
    found = Limits(
        partitions=(PartitionAccess("low"), PartitionAccess("high", priority_tier=9)),
        features=(NodeFeatures("n1", "low"), NodeFeatures("n1", "high")),
        preempt_type="partition_prio",
        preempt_mode="suspend,gang",
    )
    assert preemption("low", "", found) == (
        "It may be paused when Slurm needs its resources for jobs in high."
    )
    assert preemption("high", "", found) == ""
