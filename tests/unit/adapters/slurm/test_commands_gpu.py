"""Parsing Slurm's output about GPUs."""

from __future__ import annotations

import pytest

from portal.adapters.slurm.commands import amount, node_gpus, nodes_parse, sinfo_parse
from portal.adapters.slurm.queue import squeue_parse
from portal.core.cluster.inventory import NodeGpus
from portal.core.cluster.limits import Tres
from tests.support.paths import RECORDED

VERSIONS = ("24.11", "26.05")
DEMO = NodeGpus("standin8g", 1, 4)


def recorded(version: str, name: str) -> str:
    """A recorded output."""
    return (RECORDED / version / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_demos_gpu_is_on_one_node_of_each_group(version: str) -> None:
    nodes = nodes_parse(recorded(version, "nodes"))
    assert {(node.name, node.gpus) for node in nodes} == {("n1", (DEMO,)), ("n2", ())}
    assert [group.gpus for group in sinfo_parse(recorded(version, "sinfo"))] == [(DEMO,), (DEMO,)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(null)", ()),
        ("", ()),
        ("gpu:1,shard:4", (NodeGpus("", 1, 4),)),
        ("gpu:2(S:0-1),shard:8(S:0-1)", (NodeGpus("", 2, 8),)),
        ("gpu:a100:2(S:0,2),shard:a100:8(S:0,2)", (NodeGpus("a100", 2, 8),)),
        ("gpu:a100:2(S:0),shard:8(S:0)", (NodeGpus("a100", 2, 8),)),
        ("gpu:a100:2,gpu:1g.18gb:7,shard:a100:8", (NodeGpus("a100", 2, 8), NodeGpus("1g.18gb", 7))),
        ("gpu:a100:1(S:0),gpu:a100:1(S:1)", (NodeGpus("a100", 2),)),
        ("license:3,mps:100,gpu:4", (NodeGpus("", 4),)),
    ],
)
def test_the_gpus_of_a_node(text: str, found: tuple[NodeGpus, ...]) -> None:
    assert node_gpus(text) == found


def test_a_group_offers_the_largest_count_on_one_node() -> None:
    text = "".join(
        f"main*\x1fup\x1f4\x1f3500\x1f8:00:00\x1f{gres}\x1f\n"
        for gres in ("gpu:a100:2,shard:a100:8", "gpu:a100:4", "(null)", "gpu:h200:1")
    )
    (main,) = sinfo_parse(text)
    assert main.gpus == (NodeGpus("a100", 4, 8), NodeGpus("h200", 1))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cpu=1,mem=100M,node=1,billing=1,gres/shard=2", Tres(1, 100, 2)),
        ("cpu=1,mem=100M,node=1,gres/gpu:a100=1,gres/gpu=1", Tres(1, 100, None, 1)),
        ("gres/shard=0", Tres(shards=0)),
        ("gres/shard:a100=2", Tres()),
    ],
)
def test_amounts_of_gpus(text: str, found: Tres) -> None:
    assert amount(text) == found


@pytest.mark.parametrize(
    ("tres", "shards", "gpus"), [("gres/shard=2", 2, 0), ("gres/gpu=1", 0, 1), ("node=1", 0, 0)]
)
def test_gpus_held_by_a_job(tres: str, shards: int, gpus: int) -> None:
    one = ["7", "N/A", "N/A", "N/A"]  # neither an array nor heterogeneous
    words = ["7", "alice", "RUNNING", "None", "n1", "1", "2", "3", "0:0", "main", "5", "research"]
    line = "\x1f".join([*words, "normal", f"cpu=1,mem=1G,{tres}", "1:00:00", "0", *one, "\n"])
    (found,) = squeue_parse(line)
    job = found.report
    assert (job.shards, job.gpus, job.cpus) == (shards, gpus, 1)
