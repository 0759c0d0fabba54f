"""`slipway check`: what it says about unusual settings of Slurm."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import NoReturn

import pytest

from portal.adapters.slurm.client import Slurm
from portal.cli.check import slurm_findings
from portal.cli.check_slurm import check_slurm
from portal.cli.findings import Finding
from portal.config import LoginSettings
from portal.core.cluster.inventory import Node, NodeGpus
from portal.core.cluster.limits import Association, Limits, Minutes, PartitionAccess
from portal.errors import Unavailable
from tests.support.clock import FakeClock
from tests.support.recordings import VERSIONS
from tests.support.slurm import FakeSlurm
from tests.unit.adapters.slurm.limits.recordings import read

NODES = [Node("n1", "main", 4, 3500, True), Node("n2", "main", 4, 3500, True)]


def usual() -> Limits:
    """The recorded cluster, with an ordinary partition alone."""
    return replace(read(VERSIONS[0]), partitions=(PartitionAccess("main"),))


def at(limits: Limits, seconds: int = 0) -> datetime:
    """The portal's clock, so much behind Slurm's."""
    return datetime.fromtimestamp((limits.site.clock or 0) - seconds, UTC)


def found(limits: Limits, nodes: list[Node] = NODES) -> list[Finding]:
    """The findings."""
    return list(check_slurm(limits, nodes, at(limits)))


def test_the_embedded_cluster_lacks_nothing() -> None:
    assert [one for one in found(usual()) if not one.ok] == []
    assert Finding(True, "clocks of Slurm and the portal differ by 0 s") in found(usual())


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_clocks_that_differ(seconds: int) -> None:
    texts = [f.text for f in check_slurm(usual(), NODES, at(usual(), seconds)) if not f.ok]
    assert len(texts) == 1 and "differ by 3600 s" in texts[0] and "chrony" in texts[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accounting": False}, "no accounting"),
        ({"enforced": ("associations",)}, "not enforced"),
        ({"private": ("usage",), "associations": ()}, "PrivateData=usage"),
        ({"fenced": False}, "nothing is launched"),
        ({"partitions": (PartitionAccess("a|b"),)}, "cannot be chosen here"),
    ],
)
def test_what_is_missing(changes: dict[str, object], words: str) -> None:
    texts = [f.text for f in found(replace(usual(), **changes)) if not f.ok]  # type: ignore[arg-type]
    assert [words in text for text in texts] == [True]


@pytest.mark.parametrize(
    ("changes", "words", "ok"),
    [
        ({"federation": "fed_display"}, "a federation", False),
        ({"process_tracking": "linuxproc"}, "ProctrackType=proctrack/linuxproc", False),
        ({"constrained": ("Cores", "Devices")}, "ConstrainRAMSpace=yes", False),
        ({"constrained": ("Cores", "RAMSpace")}, "ConstrainDevices=yes", False),
        ({"select": "linear"}, "select/linear", False),
        ({"gres_types": ("gpu",)}, "GresTypes lacks shard", True),
        ({"return_to_service": 0}, "ReturnToService=0", True),
        ({"job_container": "tmpfs"}, "it needs PrologFlags=Contain", False),
        ({"job_container": "tmpfs", "prolog_flags": ("contain",)}, "/tmp of their own", True),
        ({"prolog_flags": ("contain", "x11")}, "PrologFlags=X11", True),
        ({"unkillable": ""}, "UnkillableStepProgram is not set: any user", False),
        ({"health": ""}, "HealthCheckProgram is not set: any user", False),
        ({"health_seconds": 0}, "HealthCheckInterval=0: it has to look", False),
        ({"health_seconds": 31}, "set it to 30 seconds or less", False),
        ({"health_seconds": 31, "unkillable_seconds": 120}, "HealthCheckProgram is /etc", True),
    ],
)
def test_settings_of_the_site(changes: dict[str, object], words: str, ok: bool) -> None:
    limits = usual()
    site = replace(limits.site, **changes)  # type: ignore[arg-type]
    (one,) = (f for f in found(replace(limits, site=site)) if words in f.text)
    assert one.ok is ok


def test_minutes_that_nobody_counts() -> None:
    limits = usual()
    account = Association("a", total=Minutes(cpus=10))
    changed = replace(limits, associations=(account,), site=replace(limits.site, priority="basic"))
    assert any("GrpTRESMins" in f.text and not f.ok for f in found(changed))


def test_partitions_with_rules_of_their_own() -> None:
    texts = "\n".join(f.text for f in found(read(VERSIONS[0])))
    for words in (
        "partition hid: DRAIN", "root only", "hidden", "only with a reservation", "2 nodes at",
        "OverSubscribe=FORCE:3", "one user at a time", "preempted (requeue)", "domain users",
    ):  # fmt: skip
        assert words in texts
    assert "partition main" not in texts


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (PartitionAccess("sp ace"), "people quote it"),
        (PartitionAccess("main", state="DOWN"), "jobs wait until it is up"),
        (PartitionAccess("main", state="INACTIVE"), "so nothing is launched there"),
        (PartitionAccess("main", preempt_mode="suspend"), "may be preempted (suspend)"),
    ],
)
def test_what_is_unusual_and_works(entry: PartitionAccess, words: str) -> None:
    (one,) = (f for f in found(replace(usual(), partitions=(entry,))) if words in f.text)
    assert one.ok


def test_preemption_is_said_once_for_the_whole_cluster() -> None:
    """scontrol prints Slurm's own mode for every partition."""
    entries = tuple(PartitionAccess(name, preempt_mode="requeue") for name in ("a", "b"))
    limits = replace(usual(), partitions=entries, preempt_type="qos", preempt_mode="requeue")
    texts = [f.text for f in found(limits) if "reempt" in f.text]
    assert len(texts) == 1 and "PreemptType=preempt/qos" in texts[0]


def test_nodes_that_differ() -> None:
    gpus = (NodeGpus("a100", 2), NodeGpus("", 1))
    nodes = [Node("n1", "main", 4, 3500, True, gpus), Node("n2", "main", 8, 3500, True)]
    both = [*nodes, Node("n1", "short", 4, 3500, True, gpus)]
    findings = found(usual(), both)
    assert sum("GPUs of several types: a100, without a Type" in f.text for f in findings) == 1
    assert Finding(False, "") not in findings
    assert any("partition main has nodes of 2 sizes" in f.text and f.ok for f in findings)
    assert not any("partition short has nodes" in f.text for f in findings)


def test_what_private_data_hides_is_said_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """sinfo is refused with PrivateData=nodes; everything else is still checked."""
    slurm = Slurm(FakeSlurm(FakeClock()), "slipway", ".slipway", 20, "")

    def hidden() -> NoReturn:
        raise Unavailable("Slurm does not answer: slurm_load_node: Access/permission denied")

    monkeypatch.setattr(slurm, "nodes", hidden)
    monkeypatch.setattr(slurm, "partitions", hidden)
    texts = [f.text for f in slurm_findings(LoginSettings(), slurm)]
    assert any("give slipway AdminLevel=Operator" in text for text in texts)
    assert any(text.startswith("cluster ") for text in texts)


def test_a_reader_who_sees_no_nodes_sees_no_jobs_either() -> None:
    private = replace(usual(), private=("jobs", "nodes"))
    for nodes, ok in (([], False), (NODES, True)):
        (one,) = (f for f in found(private, nodes) if "PrivateData=jobs,nodes" in f.text)
        assert one.ok is ok
