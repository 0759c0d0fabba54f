"""Account, QOS, partition, reservation, features: we accept and refuse what sbatch does."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for
from tests.support.slurm_choices import LEARNT, Choice, portal_refusal, slurm_refusals

ACCOUNTS = (None, "research", "crystals", "teaching", "nobody")
QOS = (None, "normal", "urgent", "spare", "nothing")
PARTITIONS = (None, "main", "short", "course", "nowhere")
RESERVATIONS = (None, "course", "nosuch")
CONSTRAINTS = (None, "ssd", "tape", "ssd|tape", "ssd&tape")
MINUTES = (None, 20, 45, 90, 600)
CORES = (1, 2, 99)


def choices(seed: int, count: int) -> list[Choice]:
    """Every account with every QOS and partition, each with one more option, and random ones."""
    found = [Choice(*three) for three in itertools.product(ACCOUNTS, QOS, PARTITIONS)]
    usable = (
        Choice("research"),
        Choice("crystals", "urgent"),
        Choice("crystals", "spare", "short"),
        Choice("teaching", partition="course"),
    )
    for one in usable:
        found += [replace(one, reservation=value) for value in RESERVATIONS]
        found += [replace(one, constraint=value) for value in CONSTRAINTS]
        found += [replace(one, minutes=value) for value in MINUTES]
        found += [replace(one, cores=value) for value in CORES]
        found += [replace(one, exclusive=True)]
    dice = random.Random(seed)
    for _ in range(count):
        found.append(
            Choice(
                dice.choice(ACCOUNTS[:4]),
                dice.choice(QOS[:4]),
                dice.choice(PARTITIONS[:4]),
                dice.choice((None, *RESERVATIONS)),
                dice.choice((None, None, *CONSTRAINTS)),
                dice.random() < 0.25,
                dice.choice(MINUTES),
                dice.choice((1, 1, *CORES)),
            )
        )
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(("user", "count"), [("alice", 220), ("bob", 60)])
def test_we_accept_and_refuse_what_sbatch_does(
    cluster: Cluster, make_api: MakeApi, user: str, count: int
) -> None:
    api = make_api(user)
    asked = choices(17, count)
    theirs = slurm_refusals(cluster, user, asked)
    differing = []
    for one, slurm in zip(asked, theirs, strict=True):
        found = portal_refusal(api, one)
        if bool(found) != bool(slurm):
            differing.append(f"{one}\n    ours: {found or 'accepted'}\n    Slurm: {slurm or 'ok'}")
    accepted = sum(not line for line in theirs)
    print(f"{user}: {len(asked)} combinations, Slurm accepts {accepted}")
    assert accepted >= 10, "the combinations say nothing"
    assert not differing, f"{len(differing)} of {len(asked)} differ\n" + "\n".join(differing)


@pytest.fixture
def workshop(cluster: Cluster) -> Iterator[str]:
    """A reservation of n2 for bob, which starts in a year: nothing waits for it."""
    name = "workshop"
    words = ["StartTime=now+360days", "Duration=60", "Nodes=n2", "Users=bob"]
    cluster.run("ctl", "scontrol", "create", "reservation", f"ReservationName={name}", *words)
    try:
        yield name
    finally:
        cluster.run("ctl", "scontrol", "delete", f"ReservationName={name}")


def test_reservations_of_others_are_refused(
    cluster: Cluster, alice: Api, bob: Api, workshop: str
) -> None:
    one = Choice(reservation=workshop)
    (hers,), (his,) = slurm_refusals(cluster, "alice", [one]), slurm_refusals(cluster, "bob", [one])
    assert hers, "Slurm lets alice use bob's reservation"
    wait_for("our refusal", lambda: "reservation" in portal_refusal(alice, one), LEARNT, 2.0)
    wait_for("the same for bob", lambda: bool(portal_refusal(bob, one)) == bool(his), LEARNT, 2.0)


@pytest.mark.parametrize(
    "one",
    [
        Choice("crystals", "urgent", minutes=10),
        Choice("crystals", "spare", "short", constraint="ssd"),
        Choice("teaching", partition="course", reservation="course"),
        Choice("research", exclusive=True),
    ],
    ids=str,
)
def test_the_job_has_what_was_chosen(alice: Api, cluster: Cluster, one: Choice) -> None:
    body = one.body()
    resources = body.pop("resources")
    made = alice.launch(**body, resources=resources)
    assert {name: made[name] for name in body} == body
    number = wait_for("its job", lambda: alice.get(made["id"])["job_id"])
    shown = cluster.run("ctl", "scontrol", "show", "job", number)
    facts = dict(re.findall(r"([\w/:]+)=(\S*)", shown))
    for name, value in (
        ("Account", one.account),
        ("QOS", one.qos),
        ("Partition", one.partition),
        ("Reservation", one.reservation),
        ("Features", one.constraint),
    ):
        assert value is None or facts[name] == value, shown
    # Slurm 26.05 has a word of its own for it.
    whole = facts["Exclusive"] != "NO" if "Exclusive" in facts else facts["OverSubscribe"] == "NO"
    assert whole is one.exclusive, shown
