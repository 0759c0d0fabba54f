"""The choice of Slurm's own options over the REST API, and what accounts have left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import (
    Association,
    Limits,
    Minutes,
    NodeFeatures,
    PartitionAccess,
    Qos,
    Reservation,
    Tres,
)
from tests.support.fakes import World
from tests.support.stored_jobs import job, store_jobs
from tests.unit.web.conftest import Api

MakeApi = Callable[[str], Api]
LIMITS = Limits(
    enforced=("associations", "limits", "qos"),
    default_accounts={"alice": "research", "bob": "law"},
    associations=(
        Association("research", "alice", qos=("normal", "low"), default_qos="normal"),
        Association("crystals", "alice", qos=("normal", "long"), fair_share=0.25),
        Association("law", "bob", qos=("normal",)),
        Association("research", parent="root", description="Research"),
        Association(
            "crystals", parent="science", total=Minutes(cpus=6000), used=Minutes(cpus=1500)
        ),
        Association("science", parent="root", total=Minutes(gpus=60)),
        Association("law", parent="root"),
    ),
    qos=(
        Qos("normal", user=Tres(cpus=3)),
        Qos("long", description="Days <long>", user=Tres(cpus=2), preempt=("low",)),
        Qos("low", preempt_mode="requeue"),
    ),
    partitions=(
        PartitionAccess("main"),
        PartitionAccess("crystal", accounts=("crystals",)),
        PartitionAccess("quick", not_qos=("long",)),
    ),
    reservations=(
        Reservation("course", accounts=("research",)),
        Reservation("bobs", users=("bob",)),
    ),
    features=(NodeFeatures("n1", "main", ("zen4", "ssd")), NodeFeatures("n2", "main")),
    preempt_type="qos",
    preempt_mode="requeue",
    usage_reset="MONTHLY",
)
NAMES = [one.name for one in LIMITS.partitions]


@pytest.fixture
def alice(world: World, api: MakeApi) -> Api:
    """Alice's API, on a cluster that was read."""
    world.status.save_partitions(
        [Partition(name, name == "main", True, 8, 8192, 600) for name in NAMES]
    )
    world.status.save_limits(LIMITS)
    return api("alice")


def _ask(program: Api, path: str) -> dict[str, Any]:
    answer = program("GET", path)
    assert answer.status_code == 200, answer.text
    found = answer.json
    assert isinstance(found, dict)
    return found


def _names(offers: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in offers]


def _wrong(program: Api, path: str) -> list[str]:
    answer = program("GET", path)
    assert answer.status_code == 422, answer.text
    assert answer.json
    return [error["field"] for error in answer.json["errors"]]


def test_nothing_chosen_is_slurms_defaults(alice: Api) -> None:
    found = _ask(alice, "/launch-options")
    assert found["in_effect"] == {
        "resource_group": "main", "account": "research", "qos": "normal"
    }  # fmt: skip
    assert found["resource_groups"] == NAMES
    assert found["accounts"][0] == {
        "name": "research", "title": "Research", "note": "", "default": True
    }  # fmt: skip
    assert found["accounts"][1]["note"].startswith("75 of 100 core hours left")
    assert _names(found["qos"]) == ["normal", "low"]
    assert _names(found["reservations"]) == ["course"]
    assert _names(found["features"]) == ["ssd", "zen4"]
    assert found["whole_node"]
    assert (found["warnings"], found["problems"]) == ([], [])


def test_the_lists_follow_what_is_chosen(alice: Api) -> None:
    found = _ask(alice, "/launch-options?account=crystals")
    assert _names(found["qos"]) == ["normal", "long"]
    assert found["qos"][1]["title"] == "Days <long>"
    assert found["reservations"] == []
    found = _ask(alice, "/launch-options?resource_group=crystal&account=crystals")
    assert _names(found["accounts"]) == ["crystals"]
    assert found["in_effect"]["resource_group"] == "crystal"


def test_preemption_is_warned_of(alice: Api) -> None:
    (warning,) = _ask(alice, "/launch-options?qos=low")["warnings"]
    assert "jobs with QOS long" in warning


@pytest.mark.parametrize(
    ("chosen", "field"),
    [
        ("account=law", "account"),
        ("qos=long", "qos"),
        ("qos=nonsense", "qos"),
        ("reservation=bobs", "reservation"),
        ("reservation=nothing", "reservation"),
        ("constraint=zen9", "constraint"),
        ("resource_group=crystal", "account"),
    ],
)
def test_choices_that_slurm_refuses_are_named(alice: Api, chosen: str, field: str) -> None:
    if chosen.startswith("resource_group"):
        chosen += "&account=research"
    problems = _ask(alice, f"/launch-options?{chosen}")["problems"]
    assert [one["field"] for one in problems] == [field]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("resource_group=nowhere", "resource_group"),
        ("account=two%20words", "account"),
        ("qos=", "qos"),
        ("reservation=a,b", "reservation"),
        ("constraint=a%20b", "constraint"),
        ("exclusive=perhaps", "exclusive"),
        ("owner=bob", "owner"),
        ("qos=normal&qos=long", "qos"),
    ],
)
def test_what_cannot_be_read_is_refused(alice: Api, query: str, field: str) -> None:
    assert _wrong(alice, f"/launch-options?{query}") == [field]


def test_a_full_queue_is_named_with_its_limit(world: World, alice: Api) -> None:
    few = [replace(one, submitted=2) if one.name == "long" else one for one in LIMITS.qos]
    world.status.save_limits(replace(LIMITS, qos=tuple(few)))
    mine = {"account": "crystals", "qos": "long"}
    store_jobs(world, *[job(number, world.clock(), **mine) for number in (1, 2)])
    found = _ask(alice, "/launch-options?account=crystals&qos=long")
    assert found["problems"] == [
        {
            "field": "count",
            "message": "Slurm accepts 2 at most, and 2 of yours wait or run already "
            "(QOS long, MaxSubmitJobsPerUser)",
        }
    ]
    assert _ask(alice, "/launch-options?account=crystals")["problems"] == []


def test_before_slurm_was_read_nothing_is_offered(world: World, api: MakeApi) -> None:
    assert world.status.reported().limits is None
    found = _ask(api("alice"), "/launch-options")
    assert (found["accounts"], found["resource_groups"]) == ([], [])
    assert _ask(api("alice"), "/accounts") == {"accounts": []}


def test_members_see_their_accounts_and_those_above(alice: Api) -> None:
    found = {one["name"]: one for one in _ask(alice, "/accounts")["accounts"]}
    assert set(found) == {"research", "crystals", "science"}
    crystals, science = found["crystals"], found["science"]
    assert crystals["budgets"] == [
        {"resource": "cpus", "unit": "core hours", "total": 100.0, "used": 25.0, "left": 75.0}
    ]
    assert (crystals["member"], crystals["fair_share"]) == (True, 0.25)
    assert "first of each month" in crystals["resets"]
    assert (science["member"], science["budgets"][0]["left"]) == (False, None)
    assert (found["research"]["default"], found["research"]["resets"]) == (True, "")


def test_administrators_alone_see_the_accounts_of_everybody(alice: Api, api: MakeApi) -> None:
    assert alice("GET", "/accounts?everybody=true").status_code == 403
    found = _ask(api("admin"), "/accounts?everybody=true")["accounts"]
    assert {"law", "research", "crystals"} <= set(_names(found))
    assert _ask(api("admin"), "/accounts") == {"accounts": []}
    assert _wrong(alice, "/accounts?everybody=perhaps") == ["everybody"]


def test_limits_of_groups_follow_account_and_qos(alice: Api) -> None:
    usual = _ask(alice, "/resource-groups")["resource_groups"]
    assert [(one["name"], one["max_cpus"]) for one in usual] == [("main", 3), ("quick", 3)]
    path = "/resource-groups?account=crystals&qos=long"
    found = _ask(alice, path)["resource_groups"]
    assert [(one["name"], one["max_cpus"]) for one in found] == [("main", 2), ("crystal", 2)]
    assert _wrong(alice, "/resource-groups?account=law") == ["account"]
    assert _wrong(alice, "/resource-groups?qos=long") == ["qos"]


def test_usage_follows_account_and_qos(alice: Api) -> None:
    assert _ask(alice, "/usage")["cpus"]["allowed"] == 3
    assert _ask(alice, "/usage?account=crystals&qos=long")["cpus"]["allowed"] == 2
    assert _wrong(alice, "/usage?account=law") == ["account"]
    assert _wrong(alice, "/usage?resource_group=quick&account=crystals&qos=long") == ["qos"]
    assert _wrong(alice, "/usage?resource_group=nowhere") == ["resource_group"]


def test_the_estimates_free_resources_follow_the_choice(alice: Api) -> None:
    body = {"environment": "python", "resources": {"cpus": 1, "memory": "1g"}}
    free = alice("POST", "/sessions/estimate", json=body).json
    chosen = {"account": "crystals", "qos": "long"}
    less = alice("POST", "/sessions/estimate", json=body | chosen).json
    assert free
    assert less
    assert (free["free"]["cpus"], less["free"]["cpus"]) == (3, 2)
