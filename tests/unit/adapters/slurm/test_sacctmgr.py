"""Parsing limits and nodes from the output of real Slurm versions (tests/recorded/<version>/)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from portal.adapters.slurm.sacctmgr import Printed, limits

from portal.adapters.slurm.commands import UnexpectedOutput, amount, nodes_parse
from portal.adapters.slurm.queue import squeue_parse
from portal.core.cluster.effective_limits import bounds
from portal.core.cluster.inventory import Partition
from portal.core.cluster.jobs import JobState
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Tres
from tests.unit.adapters.slurm.test_commands import VERSIONS, recorded, roles


def printed(version: str) -> Printed:
    """The five recorded outputs."""
    return Printed(
        config=recorded(version, "config"),
        associations=recorded(version, "assoc"),
        qos=recorded(version, "qos"),
        users=recorded(version, "users"),
        entries=recorded(version, "partition"),
    )


def read(version: str) -> Limits:
    """The recorded limits."""
    return limits(printed(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_limits(version: str) -> None:
    found = read(version)
    assert set(found.enforced) >= {"associations", "limits", "qos"}
    assert found.default_accounts["alice"] == "research"
    people = {a.user: a for a in found.associations if a.user}
    assert people["alice"] == Association(
        "research", "alice", qos=("normal",), default_qos="normal", group=Tres(cpus=20),
        job=Tres(cpus=8), jobs=7, minutes=240,
    )  # fmt: skip
    assert people["bob"].node == Tres(memory_mb=1500)
    (account,) = (a for a in found.associations if a.account == "research" and not a.user)
    assert (account.parent, account.group) == ("root", Tres(40, 1024 * 1024))
    (normal,) = (q for q in found.qos if q.name == "normal")
    assert (normal.user, normal.job) == (Tres(3, 3072), Tres(cpus=2))
    assert (normal.jobs, normal.minutes) == (9, 2880)
    assert found.partitions == (PartitionAccess("main", default_minutes=60),)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_resulting_limit(version: str) -> None:
    main = Partition("main", True, True, 64, 256_000, 480)
    own = bounds("alice", main, read(version))
    assert own.cpus and own.memory_mb and own.minutes and own.jobs
    assert (own.cpus.value, own.memory_mb.value) == (2, 3072)
    assert (own.minutes.value, own.jobs.value) == (480, 9)


def test_other_clusters_are_ignored() -> None:
    outputs = printed(VERSIONS[0])
    foreign = "elsewhere|research|alice|||normal|normal|cpu=1||||\n"
    assert limits(replace(outputs, associations=outputs.associations + foreign)) == read(
        VERSIONS[0]
    )


def test_access_to_partitions() -> None:
    line = (
        "PartitionName=gpu AllowAccounts=physics,bio AllowQos=ALL DenyQos=debug QoS=gpu-qos "
        "MaxCPUsPerNode=12 MaxMemPerNode=64000\n"
    )
    (entry,) = limits(replace(printed(VERSIONS[0]), entries=line)).partitions
    assert entry == PartitionAccess(
        "gpu", "gpu-qos", ("physics", "bio"), (), (), ("debug",), Tres(12, 64_000)
    )


@pytest.mark.parametrize("field", ["config", "associations", "qos", "users", "entries"])
def test_unexpected_output_raises(field: str) -> None:
    with pytest.raises(UnexpectedOutput):
        limits(replace(printed(VERSIONS[0]), **{field: "sacctmgr: what a surprise\n"}))


@pytest.mark.parametrize("version", VERSIONS)
def test_resources_held_by_jobs(version: str) -> None:
    reports = {job.id: job.report for job in squeue_parse(recorded(version, "squeue"))}
    running = reports[roles(version)["running"]]
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


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ("idle", True), ("mixed+planned", True), ("allocated", True), ("idle~", True),
        ("powered_down", True), ("down*", False), ("idle+drain", False), ("drained", False),
        ("down*+not_responding", False), ("draining", False), ("idle+maintenance", False),
    ],
)  # fmt: skip
def test_unavailable_nodes(state: str, usable: bool) -> None:
    (node,) = nodes_parse(f"n1\x1fmain*\x1f4\x1f3500\x1f{state}\x1f(null)\x1f\n")
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
    (entry,) = limits(replace(printed(VERSIONS[0]), entries=line)).partitions
    assert entry.default_minutes == minutes
