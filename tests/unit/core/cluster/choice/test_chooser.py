"""What a person is offered."""

from __future__ import annotations

from dataclasses import replace

from portal.core.cluster.choice.chooser import launch_options
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import NodeFeatures, PartitionAccess
from portal.core.slurm_options import NO_OPTIONS
from tests.support.limits import LIMITS, NOW

PARTITIONS = [
    Partition(one.name, one.name == "main", True, 4, 4096, None) for one in LIMITS.partitions
]


def test_only_what_slurm_accepts_together_is_offered() -> None:
    groups = frozenset({"users"})
    found = launch_options("alice", None, NO_OPTIONS, PARTITIONS, LIMITS, groups, NOW)
    names = {one.name for one in found.groups}
    assert "bio" in names
    assert not names & {"staff", "admin"}
    assert (found.group, found.account, found.effective_qos) == ("main", "physics", "normal")
    assert [one.name for one in found.accounts] == ["physics", "bio"]
    assert [one.name for one in found.reservations] == ["course"]
    assert found.whole_node


def test_features_of_every_node_are_no_choice() -> None:
    """What all nodes of a partition have selects nothing."""
    nodes = [("n1", ("intel", "ssd")), ("n2", ("intel",))]
    features = tuple(NodeFeatures(node, "main", names) for node, names in nodes)
    limits = replace(LIMITS, features=features)
    found = launch_options("alice", None, NO_OPTIONS, PARTITIONS, limits)
    assert [(one.name, one.note) for one in found.features] == [("ssd", "1 of 2 nodes in main")]


def test_nothing_is_shared_by_choice_where_nodes_are_always_shared() -> None:
    assert PartitionAccess("shared", oversubscribe="FORCE:4") in LIMITS.partitions
    found = launch_options("alice", "shared", NO_OPTIONS, PARTITIONS, LIMITS)
    assert not found.whole_node


def test_a_site_without_cgroups_is_named_before_anything_is_entered() -> None:
    bare = replace(LIMITS, fenced=False)
    found = launch_options("alice", None, NO_OPTIONS, PARTITIONS, bare)
    assert found.groups and "no cgroups" in found.warnings[0]
