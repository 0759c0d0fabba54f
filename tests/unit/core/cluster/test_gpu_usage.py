"""The third bar: GPU shares held, permitted and free; and who has to wait."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.inventory import Node, NodeGpus
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos, Tres
from portal.core.cluster.meters import Meter, usage_meters
from portal.core.cluster.usage import Allocation, ClusterUsage, limit_reached, measure_usage
from portal.node.common.fgpu import GpuKind, of_gres

HALF = Fraction(1, 2)
A100 = GpuKind("a100", "A100", 40_960, Fraction(1), Fraction(1, 4))
H200 = GpuKind("h200", "H200", 143_360, HALF, HALF)
MIG = GpuKind("1g.18gb", "MIG", 18_432, Fraction(8), Fraction(1), "mig")
SITE = Gpus((A100, H200, MIG))

PLAIN = Node("n2", "main", 4, 8000, True)
ONE = Node("n1", "main", 4, 8000, True, (NodeGpus("h200", 1, 4),))
TWO = Node("n3", "main", 4, 8000, True, (NodeGpus("h200", 2, 8),))
OLD = Node("n4", "main", 4, 8000, True, (NodeGpus("a100", 1, 4),))
CUT = Node("n5", "main", 4, 8000, True, (NodeGpus("1g.18gb", 7),))


def job(user: str = "alice", node: str = "n1", shards: int = 0, gpus: int = 0) -> JobReport:
    """A job that holds a GPU."""
    return JobReport(
        "1", user, JobState.RUNNING, nodes=(node,), partition="main", account="lab", qos="normal",
        cpus=1, memory_mb=1024, shards=shards, gpus=gpus,
    )  # fmt: skip


def limits(user: Tres, account: Tres) -> Limits:
    """Per-user limits and limits of the account."""
    return Limits(
        ("associations", "limits"),
        {"alice": "lab", "bob": "lab"},
        (
            Association("lab", "alice", default_qos="normal"),
            Association("lab", "bob", default_qos="normal"),
            Association("lab", group=account),
        ),
        (Qos("normal", user=user),),
        (PartitionAccess("main"),),
    )


def bar(use: ClusterUsage, user: Tres | None = None, account: Tres | None = None) -> Meter[float]:
    """Alice's bar in main."""
    found = limits(user or Tres(), account or Tres())
    meter = usage_meters("alice", "main", found, use)[2]
    assert meter is not None
    return meter


def test_a_group_without_gpus_has_two_bars() -> None:
    assert (
        usage_meters("alice", "main", None, measure_usage([job(shards=1)], [PLAIN], SITE))[2]
        is None
    )
    assert usage_meters("alice", "main", None, ClusterUsage())[2] is None


def test_shards_are_shown_in_fgpu() -> None:
    nodes = [ONE, PLAIN]
    assert bar(measure_usage([], nodes, SITE)) == Meter(0, 2, 2)
    shared = measure_usage([job(shards=1), job("bob", shards=2)], nodes, SITE)
    assert bar(shared) == Meter(0.5, 2, 0.5)
    assert (bar(shared).upper, bar(shared).lower) == (25.0, 50.0)
    assert shared.holdings[0] == Allocation("alice", "lab", "normal", "main", 1, 1024, 1, 0, 0.5)


def test_a_whole_gpu_takes_all_of_its_shards() -> None:
    use = measure_usage([job("bob", "n3", gpus=1), job("alice", "n3", shards=1)], [TWO], SITE)
    assert bar(use) == Meter(0.5, 4, 1.5)


def test_unavailable_nodes_have_no_capacity() -> None:
    assert bar(measure_usage([], [replace(ONE, usable=False)], SITE)) == Meter(0, 0, 0)


def test_kinds_are_added_up() -> None:
    nodes = [ONE, OLD, CUT]
    jobs = [job(shards=1), job(node="n4", shards=1), job(node="n5", gpus=2)]
    assert bar(measure_usage(jobs, nodes, SITE)) == Meter(1, 3.875, 2.875)
    (room,) = measure_usage(jobs, nodes, SITE).rooms
    assert [(r.kind, r.fgpu, r.free) for r in room.gpus] == [
        ("a100", 1.0, 0.75), ("h200", 2.0, 1.5), ("1g.18gb", 0.875, 0.625),
    ]  # fmt: skip


def test_a_job_on_several_nodes_holds_some_of_each() -> None:
    spread = replace(job(gpus=2), nodes=("n1", "n3"))
    assert bar(measure_usage([spread], [ONE, TWO], SITE)) == Meter(4, 6, 2)


def test_limits_on_shards() -> None:
    busy = measure_usage([job(shards=1), job("bob", shards=1)], [ONE], SITE)
    assert bar(busy, Tres(shards=2)) == Meter(0.5, 1, 0.5)
    assert bar(busy, Tres(shards=3), Tres(shards=2)) == Meter(0.5, 1, 0)
    assert bar(busy, Tres(gpus=0)) == Meter(0.5, 2, 1)  # Slurm does not track shards there


def test_shards_and_whole_gpus_are_limited_each_by_itself() -> None:
    busy = measure_usage([job(node="n3", gpus=1)], [TWO], SITE)
    assert bar(busy, Tres(shards=1)) == Meter(2, 4, 2)  # whole GPUs are not limited
    assert bar(busy, Tres(shards=1, gpus=1)) == Meter(2, 2.5, 0.5)
    assert bar(measure_usage([], [CUT], SITE), Tres(gpus=2)) == Meter(0, 0.25, 0.25)


@pytest.mark.parametrize(
    ("gres", "found"),
    [("", (0, 0)), ("shard:2", (2, 0)), ("shard:a100:3", (3, 0)), ("gpu:1g.18gb:1", (0, 1))],
)
def test_the_amount_requested_from_sbatch(gres: str, found: tuple[int, int]) -> None:
    assert of_gres(gres) == found


def test_a_waiting_user_is_told_the_limits_origin() -> None:
    use = measure_usage([job(shards=1)], [ONE], SITE)
    own = limits(Tres(shards=2), Tres(gpus=0))
    message = limit_reached("alice", "main", Tres(1, 100, 2, 0), own, use, "h200")
    assert message == "you may use 1 fGPU at once (QOS normal, MaxTRESPerUser)"
    assert limit_reached("alice", "main", Tres(1, 100, 1, 0), own, use, "h200") == ""
    whole = limit_reached("alice", "main", Tres(1, 100, 0, 1), own, use, "h200")
    assert whole == "account lab may use 0 fGPU at once (GrpTRES)"
