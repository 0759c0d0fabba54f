"""Slurm's limits: access, the tightest limit, and its origin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.core.cluster.effective_limits import UserPartition, bounds, partitions_for
from portal.core.cluster.gpu_offers import NO_GPUS
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos, Tres
from portal.core.launch.request import parse_launch
from portal.core.policy import decide
from portal.core.site_rules import SiteRules
from portal.errors import InvalidRequest
from tests.support.fakes import CATALOG

MAIN = Partition("main", True, True, 16, 64_000, 480)
GPU = Partition("gpu", False, True, 64, 512_000, None)
ALICE = Association("physics", "alice", qos=("normal",), default_qos="normal")
PHYSICS = Association("physics", parent="science")
SCIENCE = Association("science", parent="root")
NORMAL = Qos("normal")
LIMITS = Limits(
    enforced=("associations", "limits", "qos"),
    default_accounts={"alice": "physics"},
    associations=(ALICE, PHYSICS, SCIENCE, Association("root")),
    qos=(NORMAL, Qos("long", minutes=9000)),
    partitions=(PartitionAccess("main"), PartitionAccess("gpu")),
)


def limits(
    alice: Association = ALICE,
    science: Association = SCIENCE,
    qos: tuple[Qos, ...] = (NORMAL,),
    main: PartitionAccess | None = None,
) -> Limits:
    """The same limits with some of them changed."""
    return replace(
        LIMITS,
        associations=(alice, PHYSICS, science),
        qos=qos,
        partitions=(main or PartitionAccess("main"), PartitionAccess("gpu")),
    )


def cpus(found: Limits, partition: Partition = MAIN) -> tuple[int, str]:
    """The limit on cores and its origin."""
    bound = bounds("alice", partition, found).cpus
    assert bound is not None
    return bound.value, bound.why


def test_without_limits_the_largest_node_is_the_limit() -> None:
    assert cpus(LIMITS) == (16, "the largest node here has 16 cores")
    assert bounds("alice", MAIN, None).cpus == bounds("alice", MAIN, LIMITS).cpus
    assert bounds("alice", GPU, LIMITS).minutes is None
    assert bounds("alice", MAIN, LIMITS).jobs is None


@pytest.mark.parametrize(
    ("found", "value", "word"),
    [
        (limits(qos=(Qos("normal", user=Tres(cpus=3)),)), 3, "QOS normal, MaxTRESPerUser"),
        (limits(qos=(Qos("normal", job=Tres(cpus=2)),)), 2, "QOS normal, MaxTRESPerJob"),
        (limits(qos=(Qos("normal", node=Tres(cpus=2)),)), 2, "QOS normal, MaxTRESPerNode"),
        (limits(qos=(Qos("normal", account=Tres(cpus=5)),)), 5, "account physics"),
        (limits(qos=(Qos("normal", group=Tres(cpus=6)),)), 6, "everybody in QOS normal"),
        (limits(replace(ALICE, job=Tres(cpus=4))), 4, "account physics, MaxTRES"),
        (limits(replace(ALICE, group=Tres(cpus=7))), 7, "your association"),
        (
            limits(science=replace(SCIENCE, group=Tres(cpus=1))),
            1,
            "account science may use 1 core",
        ),
        (limits(main=PartitionAccess("main", node=Tres(cpus=8))), 8, "a session in main"),
        (limits(replace(ALICE, job=Tres(cpus=0))), 0, "0 cores"),
    ],
)
def test_every_kind_of_limit_applies_and_names_its_origin(
    found: Limits, value: int, word: str
) -> None:
    bound, why = cpus(found)
    assert bound == value
    assert word in why


def test_the_first_of_one_kind_applies_as_in_slurm() -> None:
    alice = replace(ALICE, job=Tres(cpus=2), group=Tres(cpus=2))
    normal = Qos("normal", job=Tres(cpus=9), group=Tres(cpus=12))
    assert cpus(limits(alice, qos=(normal,)))[0] == 9  # the QOS precedes the association
    own = Qos("main-qos", job=Tres(cpus=11))
    entry = PartitionAccess("main", qos="main-qos")
    assert cpus(limits(alice, qos=(normal, own), main=entry))[0] == 11
    over = replace(normal, flags=("OverPartQOS",))
    assert cpus(limits(alice, qos=(over, own), main=entry))[0] == 9


def test_time_and_memory_and_jobs() -> None:
    alice = replace(ALICE, minutes=60, jobs=4)
    found = limits(alice, qos=(Qos("normal", user=Tres(memory_mb=3072)),))
    own = bounds("alice", MAIN, found)
    assert own.minutes and (own.minutes.value, own.jobs and own.jobs.value) == (60, 4)
    assert own.memory_mb and "3 GB at once" in own.memory_mb.why
    longer = limits(alice, qos=(Qos("normal", minutes=900, flags=("PartitionTimeLimit",)),))
    minutes = bounds("alice", MAIN, longer).minutes
    assert minutes and minutes.value == 900


def test_limits_that_slurm_does_not_enforce_are_ignored() -> None:
    found = replace(limits(qos=(Qos("normal", user=Tres(cpus=3)),)), enforced=())
    assert cpus(found)[0] == 16
    assert [g.name for g in partitions_for("stranger", [MAIN, GPU], found)] == ["main", "gpu"]


@pytest.mark.parametrize(
    ("entry", "open_"),
    [
        (PartitionAccess("main"), True),
        (PartitionAccess("main", accounts=("physics", "chemistry")), True),
        (PartitionAccess("main", accounts=("chemistry",)), False),
        (PartitionAccess("main", not_accounts=("physics",)), False),
        (PartitionAccess("main", allowed_qos=("long",)), False),
        (PartitionAccess("main", not_qos=("normal",)), False),
    ],
)
def test_only_accessible_partitions_are_offered(entry: PartitionAccess, open_: bool) -> None:
    names = [group.name for group in partitions_for("alice", [MAIN, GPU], limits(main=entry))]
    assert names == (["main", "gpu"] if open_ else ["gpu"])


def test_an_association_may_be_for_one_partition() -> None:
    alice = replace(ALICE, partition="gpu", group=Tres(cpus=5))
    (group,) = partitions_for("alice", [MAIN, GPU], limits(alice))
    assert (group.name, group.max_cpus) == ("gpu", 5)


def test_unknown_users_are_offered_nothing_with_a_reason() -> None:
    assert partitions_for("bob", [MAIN, GPU], LIMITS) == []
    assert len(partitions_for("bob", [MAIN, GPU], None)) == 2
    request = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "1g"}})
    with pytest.raises(InvalidRequest) as caught:
        decide(request, CATALOG, [], SiteRules(), NO_GPUS)
    assert caught.value.errors[0].field == "resource_group"


def test_a_refusal_names_the_field_and_the_limits_origin() -> None:
    own = limits(qos=(Qos("normal", user=Tres(3, 3072), minutes=30),))
    groups: list[UserPartition] = partitions_for("alice", [MAIN], own)
    wanted = {"environment": "python", "resources": {"cpus": 5, "memory": "4g"}, "time_limit": 31}
    with pytest.raises(InvalidRequest) as caught:
        decide(parse_launch(wanted), CATALOG, groups, SiteRules(), NO_GPUS)
    assert {e.field: e.message for e in caught.value.errors} == {
        "resources.cpus": "5 is too many: you may use 3 cores at once (QOS normal, MaxTRESPerUser)",
        "resources.memory": "4 GB is too much: "
        "you may use 3 GB at once (QOS normal, MaxTRESPerUser)",
        "time_limit": "31 min is too long: "
        "sessions of yours may run 30 min at most (QOS normal, MaxWall)",
    }


def test_hidden_limits_exclude_nobody() -> None:
    hidden = replace(LIMITS, associations=(Association("root", "root"),), default_accounts={})
    hidden = replace(
        hidden, partitions=(PartitionAccess("main", accounts=("physics",)), PartitionAccess("gpu"))
    )
    assert len(partitions_for("alice", [MAIN, GPU], hidden)) == 2


def test_cyclic_accounts_terminate() -> None:
    around = replace(LIMITS, associations=(ALICE, PHYSICS, replace(SCIENCE, parent="physics")))
    assert cpus(around)[0] == 16


@pytest.mark.parametrize(
    ("partition", "usual", "qos", "minutes"),
    [
        (MAIN, 60, NORMAL, 60),
        (MAIN, None, NORMAL, 480),  # DefaultTime=NONE stands for MaxTime
        (MAIN, 600, NORMAL, 480),
        (MAIN, 60, Qos("normal", minutes=30), 30),
        (MAIN, None, Qos("normal", minutes=30), 30),
        (GPU, None, NORMAL, None),
        (GPU, 90, NORMAL, 90),
    ],
)
def test_the_time_limit_of_a_session_that_names_none(
    partition: Partition, usual: int | None, qos: Qos, minutes: int | None
) -> None:
    access = tuple(PartitionAccess(name, default_minutes=usual) for name in ("main", "gpu"))
    known = replace(limits(qos=(qos,)), partitions=access)
    (found,) = partitions_for("alice", [partition], known)
    assert found.default_minutes == minutes
    request = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "1g"}})
    assert decide(request, CATALOG, [found], SiteRules(), NO_GPUS).minutes == minutes
    asked = request.model_copy(update={"time_limit": 20})
    assert decide(asked, CATALOG, [found], SiteRules(), NO_GPUS).minutes == 20


def test_before_the_limits_are_known_slurm_chooses() -> None:
    (found,) = partitions_for("alice", [MAIN], None)
    assert found.default_minutes is None
