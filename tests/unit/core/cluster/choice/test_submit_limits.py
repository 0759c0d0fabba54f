"""Limits on submitted jobs: which apply, and which jobs each of them counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portal.core.cluster.choice.submit_limits import CountJobs, submit_limits, too_many_jobs
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos, user_limits
from portal.core.cluster.queue import QueuePart
from portal.core.slurm_options import SlurmOptions

ALICE = Association("physics", "alice", qos=("normal", "long"), default_qos="normal")


def limits(
    alice: dict[str, Any] | None = None,
    accounts: dict[str, dict[str, Any]] | None = None,
    qos: dict[str, dict[str, Any]] | None = None,
    others: tuple[Association, ...] = (),
    partition_qos: str = "",
) -> Limits:
    """Alice in physics, below science, beside bio; what is set of limits on submitted jobs."""
    parents = {"physics": "science", "bio": "science", "science": "root"}
    named = [
        Association(name, parent=parent, **(accounts or {}).get(name, {}))
        for name, parent in parents.items()
    ]
    own = replace(ALICE, **(alice or {}))
    return Limits(
        enforced=("associations", "limits", "qos"),
        default_accounts={"alice": "physics"},
        associations=(own, *others, *named),
        qos=tuple(Qos(name, **(qos or {}).get(name, {})) for name in ("normal", "long", "part")),
        partitions=(
            PartitionAccess("main", qos=partition_qos),
            PartitionAccess("fast", qos=partition_qos),
        ),
    )


def found(given: Limits, **options: Any) -> list[tuple[int, str, QueuePart | None]]:
    """The limits of alice in main."""
    own = user_limits("alice", "main", given, SlurmOptions(**options))
    assert own is not None
    return [(one.most, one.source, one.part) for one in submit_limits(own, given)]


def some(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_nothing_set_is_no_limit() -> None:
    assert found(limits()) == []


def test_of_a_user_in_an_account_those_in_that_account_count() -> None:
    part = QueuePart("alice", some("physics"))
    assert found(limits({"submitted": 3, "group_submitted": 4})) == [
        (4, "account physics, GrpSubmitJobs", part),
        (3, "account physics, MaxSubmitJobs", part),
    ]


def test_of_an_account_all_below_it_count_and_every_account_above_applies() -> None:
    given = limits(accounts={"physics": {"group_submitted": 5}, "science": {"group_submitted": 9}})
    assert found(given) == [
        (5, "account physics, GrpSubmitJobs", QueuePart(accounts=some("physics"))),
        (
            9,
            "account science, GrpSubmitJobs",
            QueuePart(accounts=some("science", "physics", "bio")),
        ),
    ]


def test_a_qos_counts_only_its_own_jobs_and_overrides_the_association() -> None:
    given = limits(
        {"submitted": 3},
        {"science": {"group_submitted": 9}},
        {"normal": {"submitted": 4, "submitted_of_account": 6, "group_submitted": 8}},
    )
    assert found(given) == [
        (8, "QOS normal, GrpSubmitJobs", QueuePart(qos="normal")),
        (
            6,
            "QOS normal, MaxSubmitJobsPerAccount",
            QueuePart(accounts=some("physics"), qos="normal"),
        ),
        (4, "QOS normal, MaxSubmitJobsPerUser", QueuePart("alice", qos="normal")),
    ]
    assert [one[:2] for one in found(given, qos="long")] == [
        (3, "account physics, MaxSubmitJobs"),
        (9, "account science, GrpSubmitJobs"),
    ]


def test_a_qos_limit_for_accounts_overrides_that_of_the_association_too() -> None:
    given = limits({"submitted": 3}, qos={"normal": {"submitted_of_account": 6}})
    assert [one[1] for one in found(given)] == ["QOS normal, MaxSubmitJobsPerAccount"]


def test_a_partitions_qos_comes_first_and_counts_all_partitions_that_have_it() -> None:
    qos = {"part": {"submitted": 2}, "normal": {"submitted": 5, "group_submitted": 7}}
    assert found(limits(qos=qos, partition_qos="part")) == [
        (
            2,
            "QOS part, MaxSubmitJobsPerUser",
            QueuePart("alice", qos="part", of_qos=some("main", "fast")),
        ),
        (7, "QOS normal, GrpSubmitJobs", QueuePart(qos="normal")),
    ]


def test_an_association_for_a_partition_counts_the_jobs_there() -> None:
    there = replace(ALICE, partition="main", submitted=2)
    given = limits({"submitted": 3}, others=(there,))
    part = QueuePart("alice", some("physics"), partitions=some("main"))
    assert found(given) == [(2, "account physics, MaxSubmitJobs", part)]


def test_what_the_rest_of_several_associations_counts_is_left_to_slurm() -> None:
    there = replace(ALICE, partition="fast", submitted=2)
    given = limits({"submitted": 3}, others=(there,))
    assert found(given) == [(3, "account physics, MaxSubmitJobs", None)]
    own = user_limits("alice", "main", given)
    assert own is not None
    assert too_many_jobs(own, given, 1, lambda part: 100) == ""
    assert too_many_jobs(own, given, 4, lambda part: 100) != ""


@pytest.mark.parametrize(
    ("queued", "count", "refused"), [(0, 3, False), (0, 4, True), (2, 1, False), (2, 2, True)]
)
def test_jobs_in_the_queue_count(queued: int, count: int, refused: bool) -> None:
    given = limits({"submitted": 3})
    own = user_limits("alice", "main", given)
    assert own is not None
    assert bool(too_many_jobs(own, given, count, lambda part: queued)) is refused


def _always(queued: int) -> CountJobs:
    return lambda part: queued


def test_the_words() -> None:
    alone = limits({"submitted": 3})
    together = limits(accounts={"science": {"group_submitted": 9}})
    words = [
        too_many_jobs(own, given, count, _always(queued))
        for given, count, queued in ((alone, 4, 2), (alone, 1, 3), (together, 1, 9))
        if (own := user_limits("alice", "main", given))
    ]
    assert words == [
        "Slurm accepts 3 at most (account physics, MaxSubmitJobs)",
        "Slurm accepts 3 at most, and 3 of yours wait or run already "
        "(account physics, MaxSubmitJobs)",
        "Slurm accepts 9 at most, and with those of others, so many wait or run already "
        "(account science, GrpSubmitJobs)",
    ]


def test_an_unenforced_limit_is_none() -> None:
    given = replace(limits({"submitted": 0}), enforced=("associations",))
    assert found(given) == []


def test_accounts_that_are_each_others_parents_end() -> None:
    given = limits(accounts={"science": {"group_submitted": 1}})
    loop = tuple(
        replace(one, parent="physics") if one.account == "science" else one
        for one in given.associations
    )
    assert len(found(replace(given, associations=loop))) == 1
