"""What a waiting job is charged to, in words."""

from __future__ import annotations

from dataclasses import replace

from portal.core.cluster.choice.charge import Charge, charge_of
from portal.core.cluster.limits import (
    Association,
    Limits,
    Minutes,
    PartitionAccess,
    Qos,
    Reservation,
    Tres,
)
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions

LIMITS = Limits(
    enforced=("associations", "limits", "qos", "safe"),
    default_accounts={"alice": "crystals"},
    associations=(
        Association("crystals", "alice", qos=("normal", "long"), default_qos="normal"),
        Association("crystals", parent="physics"),
        Association("physics", parent="root", total=Minutes(cpus=1000)),
        Association("root"),
    ),
    qos=(Qos("normal"), Qos("long", user=Tres(cpus=4)), Qos("part-gpu", group=Tres(gpus=2))),
    partitions=(PartitionAccess("main"), PartitionAccess("gpu", qos="part-gpu")),
    reservations=(Reservation("course", active=True),),
    decay_minutes=7 * 1440,
)


def test_the_default_account_is_named_and_so_is_the_one_above_it_that_has_limits() -> None:
    found = charge_of("alice", "main", NO_OPTIONS, LIMITS)
    assert found.account == "crystals"
    assert found.accounts == "Account physics, above your account crystals,"
    assert found.resets == "Half of it is forgotten every 7 days."
    assert found.by_time_limit


def test_an_account_with_limits_of_its_own() -> None:
    crystals, above = (
        Association("crystals", parent="physics", group_jobs=3),
        LIMITS.associations[2],
    )
    limits = replace(LIMITS, associations=(LIMITS.associations[0], crystals, above))
    found = charge_of("alice", "main", NO_OPTIONS, limits)
    assert found.accounts == "Your account crystals, or physics above it,"
    limits = replace(LIMITS, associations=(LIMITS.associations[0], crystals))
    assert charge_of("alice", "main", NO_OPTIONS, limits).accounts == "Your account crystals"


def test_only_qos_with_limits_are_named_and_the_partitions_own_is_one() -> None:
    chosen = SlurmOptions(qos="long")
    assert charge_of("alice", "main", chosen, LIMITS).all_qos == "QOS long"
    assert charge_of("alice", "gpu", chosen, LIMITS).all_qos == "QOS long or part-gpu"
    assert charge_of("alice", "gpu", NO_OPTIONS, LIMITS).all_qos == "QOS part-gpu"
    assert charge_of("alice", "main", NO_OPTIONS, LIMITS).all_qos == "QOS normal"


def test_without_limits_only_what_was_chosen_is_known() -> None:
    assert charge_of("alice", "main", NO_OPTIONS, None) == Charge()
    found = charge_of("alice", "main", SlurmOptions(account="crystals"), None)
    assert found.accounts == "Your account crystals, or one above it,"
    assert Charge().accounts == "Your group"


def test_an_active_reservation_is_known_as_such() -> None:
    options = SlurmOptions(reservation="course")
    assert charge_of("alice", "main", options, LIMITS).reservation_active
    limits = replace(LIMITS, reservations=(Reservation("course"),))
    assert not charge_of("alice", "main", options, limits).reservation_active
