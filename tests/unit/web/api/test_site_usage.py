"""The bars and the limits on the pages and in the REST API."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from portal.errors import Unavailable
from tests.support.fakes import World
from tests.unit.web.conftest import Api, Browser

MakeApi = Callable[[str], Api]
SMALL = {"environment": "python", "resources": {"cpus": 1, "memory": "1g"}}


def read_slurm(world: World) -> None:
    """The worker's tasks that precede the queue's."""
    worker = world.worker
    worker.read_partitions()
    worker.read_limits()
    assert worker.poll()


def test_usage_follows_the_queue(world: World, api: MakeApi) -> None:
    read_slurm(world)
    alice, bob = api("alice"), api("bob")
    nothing = {"mine": 0, "allowed": 3, "available": 3, "elsewhere": 0, "others": 0}
    assert alice("GET", "/usage").json == {
        "resource_group": "main",
        "cpus": nothing,
        "memory": {
            "mine": "0m",
            "allowed": "3g",
            "available": "3g",
            "elsewhere": "0m",
            "others": "0m",
        },
        "fgpu": None,
    }
    alice("POST", "/sessions", json=SMALL)
    world.slurm.start(world.slurm.jobs[0])
    read_slurm(world)
    found = alice("GET", "/usage?resource_group=main").json
    assert found and found["cpus"] == nothing | {"mine": 1, "available": 2}
    assert (found["memory"]["mine"], found["memory"]["available"]) == ("1g", "2g")
    assert (other := bob("GET", "/usage").json) and other["cpus"] == nothing
    world.slurm.finish(world.slurm.jobs[0], "COMPLETED")
    read_slurm(world)
    assert (after := alice("GET", "/usage").json) and after["cpus"] == nothing


def test_usage_before_slurm_was_read(world: World, api: MakeApi) -> None:
    assert world.slurm.jobs == []
    assert api("alice")("GET", "/usage").status_code == 422
    world.status.save_partitions(world.scheduler.partitions())
    found = api("alice")("GET", "/usage").json
    assert found and found["cpus"]["allowed"] is found["cpus"]["available"] is None


def test_a_group_that_is_not_open_is_refused(world: World, api: MakeApi) -> None:
    world.slurm.entry = "AllowAccounts=chemistry"
    read_slurm(world)
    alice = api("alice")
    assert alice("GET", "/resource-groups").json == {"resource_groups": []}
    answer = alice("GET", "/usage?resource_group=main")
    assert answer.status_code == 422
    assert answer.json and answer.json["errors"][0]["field"] == "resource_group"
    refused = alice("POST", "/sessions", json=SMALL)
    assert refused.json and refused.json["errors"][0]["field"] == "resource_group"
    assert world.slurm.jobs == []


def test_the_effective_limit_and_its_origin(world: World, api: MakeApi) -> None:
    read_slurm(world)
    alice = api("alice")
    answer = alice("GET", "/resource-groups").json
    assert answer is not None
    (group,) = answer["resource_groups"]
    assert (group["max_cpus"], group["max_memory"]) == (3, "3g")
    assert "QOS normal" in group["bounded_by"]["cpus"]
    refused = alice("POST", "/sessions", json={**SMALL, "resources": {"cpus": 4, "memory": "1g"}})
    assert refused.json and refused.json["errors"] == [
        {
            "field": "resources.cpus",
            "message": "4 is too many: you may use 3 cores at once (QOS normal, MaxTRESPerUser)",
        }
    ]


def test_the_page_shows_limits_and_bars(world: World, alice: Browser) -> None:
    read_slurm(world)
    page = alice.get("/sessions/new").text
    assert '<span data-bound="cpus">3</span>' in page
    assert '<span data-bound="memory">3 GB</span>' in page
    assert "You may use 3 cores at once (QOS normal, MaxTRESPerUser)." in page
    assert "free now: 3 cores, 3 GB" in page
    page = alice.get("/sessions").text
    bars = re.findall(r'data-meter="(\w+)" data-mine="(\d+)" .*data-allowed="(\d+)"', page)
    assert bars == [("cpus", "0", "3"), ("memory", "0", "3072")]


def test_before_slurm_was_read_the_page_has_no_bars(world: World, alice: Browser) -> None:
    assert world.slurm.jobs == []
    assert "data-meter" not in alice.get("/sessions").text
    assert alice.get("/sessions?group=nowhere").status_code == 200
    read_slurm(world)
    assert "data-meter" in alice.get("/sessions?group=nowhere").text


def test_the_reason_for_missing_groups_is_shown(world: World, alice: Browser) -> None:
    world.slurm.entry = "DenyAccounts=research"
    read_slurm(world)
    assert "Your account may use no resource group here" in alice.get("/sessions/new").text


def test_limits_stay_while_accounting_is_silent(world: World) -> None:
    read_slurm(world)
    before = world.status.reported().limits
    world.slurm.accounting_down = True
    worker = world.worker
    with pytest.raises(Unavailable):
        worker.read_limits()
    assert before is not None
    assert world.status.reported().limits == before
