"""Slurm's limits in words, and the commands next to them."""

from __future__ import annotations

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limit_report import Limit, Limited, limit_report
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos, Tres

MAIN = Partition("main", True, True, 4, 3500, 480)
GPU = Partition("gpu", False, False, 64, 512 * 1024, None)
LIMITS = Limits(
    enforced=("associations", "limits"),
    qos=(Qos("normal", user=Tres(3, 3072), jobs=5, minutes=1500), Qos("long")),
    associations=(
        Association("root"),
        Association("physics", parent="root", group=Tres(40), job=Tres(8, 1536)),
        # As sacctmgr shows it: the account's own limit, inherited.
        Association("physics", "alice", job=Tres(8, 1536)),
        Association("physics", "bob", job=Tres(2, None), jobs=1, partition="main"),
    ),
    partitions=(
        PartitionAccess("main", qos="long", accounts=("physics", "law"), node=Tres(2, 1000)),
    ),
)


def commands(found: Limited) -> dict[str, str]:
    """Command by value of the limits that are set."""
    return {limit.command: limit.value for limit in found.set}


def test_every_limit_has_the_command_that_sets_it() -> None:
    found = limit_report(LIMITS, [MAIN, GPU])
    assert found.applied
    normal, long = found.qos
    assert commands(normal) == {
        "sacctmgr modify qos normal set MaxTRESPerUser=cpu=3,mem=3G": "3 cores and 3 GB",
        "sacctmgr modify qos normal set MaxJobsPerUser=5": "5",
        "sacctmgr modify qos normal set MaxWall=1-01:00:00": "1 day 1 hour",
    }
    assert long.set == []
    assert Limit(
        "Each session",
        "no limit",
        "sacctmgr modify qos long set MaxTRESPerJob=cpu=8,mem=32G",
        False,
    ) in long.unset  # fmt: skip


def test_accounts_and_users_with_differing_limits() -> None:
    found = limit_report(LIMITS, [])
    root, physics = found.accounts
    assert root.set == []
    assert physics.about == "below root"
    assert commands(physics) == {
        "sacctmgr modify account where name=physics set GrpTRES=cpu=40": "40 cores",
        "sacctmgr modify account where name=physics set MaxTRES=cpu=8,mem=1536M": (
            "8 cores and 1.5 GB"
        ),
    }
    (bob,) = found.users
    assert (bob.name, bob.about) == ("bob", "account physics, group main")
    where = "sacctmgr modify user where name=bob account=physics partition=main set"
    assert commands(bob) == {f"{where} MaxTRES=cpu=2": "2 cores", f"{where} MaxJobs=1": "1"}


def test_partitions_use_scontrols_syntax() -> None:
    main, gpu = limit_report(LIMITS, [MAIN, GPU]).groups
    change = "scontrol update PartitionName=main"
    assert commands(main) == {
        f"{change} MaxTime=08:00:00": "8 hours",
        f"{change} MaxCPUsPerNode=2": "2",
        f"{change} MaxMemPerNode=1000": "1000 MB",
        f"{change} AllowAccounts=physics,law": "physics, law",
        f"{change} QOS=long": "long",
    }
    assert gpu.set == []
    assert gpu.about == "largest node: 64 cores and 512 GB; closed"


def test_unenforced_limits_are_reported() -> None:
    assert not limit_report(Limits(enforced=("associations",)), []).applied
