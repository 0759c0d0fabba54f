"""Limits on shares of GPUs in words, with the commands that set them."""

from __future__ import annotations

from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.cluster.limit_report import limit_report
from portal.core.cluster.limits import Limits, Qos, Tres

GPUS = (NodeGpus("a100", 2, 8), NodeGpus("", 1), NodeGpus("l40s", 0))
GPU = Partition("gpu", False, True, 64, 512 * 1024, None, gpus=GPUS)


def test_shards_have_a_title_and_slurms_own_name() -> None:
    limits = Limits(
        qos=(
            Qos("all", user=Tres(3, 3072, 4)),
            Qos("two", user=Tres(None, 1024, 1)),
            Qos("one", user=Tres(shards=0)),
            Qos("whole", user=Tres(gpus=2)),
        )
    )
    found = [qos.set[0] for qos in limit_report(limits, []).qos]
    assert [limit.value for limit in found] == [
        "3 cores, 3 GB and 4 GPU shards",
        "1 GB and 1 GPU shard",
        "0 GPU shards",
        "2 whole GPUs",
    ]
    start = "sacctmgr modify qos {} set MaxTRESPerUser="
    assert [limit.command for limit in found] == [
        start.format("all") + "cpu=3,mem=3G,gres/shard=4",
        start.format("two") + "mem=1G,gres/shard=1",
        start.format("one") + "gres/shard=0",
        start.format("whole") + "gres/gpu=2",
    ]


def test_the_largest_nodes_gpus_are_named() -> None:
    (group,) = limit_report(Limits(), [GPU]).groups
    assert group.about == "largest node: 64 cores and 512 GB; 2 GPUs (a100) in 8 shards; 1 GPU"
