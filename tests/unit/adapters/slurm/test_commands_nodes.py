"""Nodes and amounts from the output of real Slurm versions (tests/recorded/<version>/)."""

from __future__ import annotations

import pytest

from portal.adapters.slurm.commands import amount, nodes_parse
from portal.adapters.slurm.queue import squeue_parse
from portal.core.cluster.job_reports import JobState
from portal.core.cluster.limits import Tres
from tests.support.recordings import VERSIONS, job_kinds, recorded


@pytest.mark.parametrize("version", VERSIONS)
def test_resources_held_by_jobs(version: str) -> None:
    reports = {job.id: job.report for job in squeue_parse(recorded(version, "squeue"))}
    running = reports[job_kinds(version)["running"]]
    assert (running.account, running.qos) == ("research", "normal")
    assert (running.state, running.cpus, running.memory_mb) == (JobState.RUNNING, 1, 100)


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes(version: str) -> None:
    nodes = nodes_parse(recorded(version, "nodes"))
    assert [(n.name, n.partition, n.usable) for n in nodes if n.partition == "main"] == [
        ("n1", "main", True),
        ("n2", "main", True),
    ]
    assert all(n.cpus >= 2 and n.memory_mb == 3500 for n in nodes)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_order_of_partitions_is_no_change(version: str) -> None:
    n1, n2 = (
        [line for line in recorded(version, "nodes").splitlines(keepends=True) if line[:2] == name]
        for name in ("n1", "n2")
    )
    nodes = nodes_parse("".join([*n2, *n1]))
    assert nodes == nodes_parse("".join([*reversed(n2), *reversed(n1)]))
    assert [node.name for node in nodes] == ["n2"] * len(n2) + ["n1"] * len(n1)


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ("idle", True), ("mixed+planned", True), ("allocated", True), ("idle~", True),
        ("powered_down", True), ("down*", False), ("idle+drain", False), ("drained", False),
        ("down*+not_responding", False), ("draining", False), ("idle+maintenance", False),
    ],
)  # fmt: skip
def test_unavailable_nodes(state: str, usable: bool) -> None:
    (node,) = nodes_parse(f"n1\x1fmain*\x1f4\x1f3500\x1f{state}\x1f(null)\x1fib\x1fnone\x1f\n")
    assert node.usable is usable


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cpu=3,mem=3G", Tres(3, 3072)),
        ("mem=1500M", Tres(None, 1500)),
        ("mem=2T,node=1", Tres(None, 2 * 1024 * 1024)),
        ("mem=0.50G,cpu=1", Tres(1, 512)),
        ("cpu=8,gres/gpu=1", Tres(8, gpus=1)),
        ("cpu=UNLIMITED,mem=UNLIMITED", Tres()),
        ("", Tres()),
    ],
)
def test_amounts(text: str, found: Tres) -> None:
    assert amount(text) == found


def test_features_and_reasons() -> None:
    reason = "disque\x1fde\u0301fectueux,\nsee ticket"
    line = f"n1\x1fmain*\x1f4\x1f3500\x1fIDLE+DRAIN\x1f(null)\x1fib,amd\x1f{reason}\x1f\n"
    plain = "n2\x1fmain*\x1f4\x1f3500\x1fidle\x1f(null)\x1f(null)\x1fnone\x1f\n"
    first, second = nodes_parse(line + plain)
    assert (first.state, first.features) == ("idle+drain", ("ib", "amd"))
    assert first.reason == "disque d\u00e9fectueux, see ticket"
    assert (second.name, second.state, second.features, second.reason) == ("n2", "idle", (), "")
