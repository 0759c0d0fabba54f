"""Folders, mounts, templates and estimates over the REST API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from portal.core.launch.mounts import Mount
from portal.core.launch.templates import Template
from portal.errors import Unavailable
from tests.support.fakes import World
from tests.unit.web.conftest import LAUNCH, PORTAL, Api

MakeApi = Callable[[str], Api]
SMALL = Template(name="small", title="Small", cpus=1, memory_mb=600, time_limit=30)
HUGE = Template(name="huge", title="Huge", cpus=64, memory_mb=600)


@pytest.fixture
def program(api: MakeApi) -> Api:
    return api("alice")


@pytest.fixture
def templates(world: World) -> None:
    world.store_templates(SMALL, HUGE)


def fields(answer: Any, status: int = 422) -> dict[str, str]:
    assert answer.status_code == status, answer.text
    return {error["field"]: error["message"] for error in answer.json["errors"]}


def test_a_folder_is_created_and_listed(program: Api, api: MakeApi) -> None:
    made = program("POST", "/folders", json={"name": "data"})
    assert made.status_code == 201
    assert made.json == {
        "name": "data",
        "path": "/home/alice/storage/data",
        "mountable": True,
        "problem": "",
        "owner": "",
        "read_only": False,
    }
    listed = program("GET", "/folders").json
    home = made.json | {"name": "home", "path": "/home/alice"}
    assert listed == {"folders": [home, made.json]}
    assert len((api("bob")("GET", "/folders").json or {})["folders"]) == 1


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".x", "home", "x" * 256, "a\n", 7, None])
def test_an_invalid_name_is_reported(world: World, program: Api, name: object) -> None:
    assert set(fields(program("POST", "/folders", json={"name": name}))) == {"name"}
    assert world.slurm.storage.get("alice", set()) == set()


@pytest.mark.parametrize("name", ["über", "데이터", "a b", "Data-2 (2)", "$(id)", "x" * 255])
def test_a_folder_of_any_name_is_created_and_mounted(program: Api, name: str) -> None:
    assert (program("POST", "/folders", json={"name": name}).json or {})["mountable"]
    answer = program("POST", "/sessions", json=LAUNCH | {"mounts": [name]})
    assert answer.status_code == 201, answer.text


def test_a_taken_name(program: Api) -> None:
    program("POST", "/folders", json={"name": "data"})
    answer = program("POST", "/folders", json={"name": "data"})
    assert fields(answer) == {"name": "you already have a folder or a file of this name"}
    assert set(fields(program("POST", "/folders", json={}))) == {"name"}
    assert set(fields(program("POST", "/folders", json={"name": "x", "to": "y"}))) == {"to"}


def test_mounts_are_stored_and_shown(world: World, program: Api) -> None:
    program("POST", "/folders", json={"name": "data"})
    mounts = ["home", {"folder": "data", "read_only": True}]
    answer = program("POST", "/sessions", json=LAUNCH | {"mounts": mounts})
    assert answer.status_code == 201, answer.text
    (session,) = answer.json["sessions"] if answer.json else []
    assert session["mounts"] == [
        {"folder": "home", "read_only": False, "path": "~/home"},
        {"folder": "data", "read_only": True, "path": "~/data"},
    ]
    stored = world.store.get(session["id"])
    assert stored is not None
    assert stored.mounts == (Mount(folder="home"), Mount(folder="data", read_only=True))
    assert program("GET", f"/sessions/{session['id']}").json == session


def test_a_folder_that_the_user_does_not_have(world: World, program: Api, api: MakeApi) -> None:
    api("bob")("POST", "/folders", json={"name": "bobs"})
    program("POST", "/folders", json={"name": "data"})
    answer = program("POST", "/sessions", json=LAUNCH | {"mounts": ["data", "bobs", "home"]})
    assert fields(answer) == {"mounts.1": "you have no folder named bobs"}
    assert world.slurm.jobs == []
    assert world.store.live() == []


def test_the_login_node_is_queried_for_storage_folders_only(world: World, program: Api) -> None:
    assert program("POST", "/sessions", json=LAUNCH).status_code == 201
    assert program("POST", "/sessions", json=LAUNCH | {"mounts": ["home"]}).status_code == 201
    assert not any("storage" in line for line in world.slurm.commands)


def test_an_unavailable_login_node(
    world: World, program: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_words: object, **_more: object) -> None:
        raise Unavailable("The login node does not answer.")

    monkeypatch.setattr(world.slurm, "run", away)
    assert program("GET", "/folders").status_code == 503
    assert program("POST", "/folders", json={"name": "x"}).status_code == 503
    assert program("POST", "/sessions", json=LAUNCH | {"mounts": ["x"]}).status_code == 503
    assert world.store.live() == []


@pytest.mark.usefixtures("templates")
def test_a_template_in_place_of_resources(program: Api) -> None:
    body = {"environment": "python", "template": "small"}
    answer = program("POST", "/sessions", json=body)
    assert answer.status_code == 201, answer.text
    (session,) = answer.json["sessions"] if answer.json else []
    asked = {"cpus": 1, "memory": "600m", "shared_memory": "300m"}
    assert session["resources"] == asked | {"fgpu": None, "gpu": None}
    assert session["time_limit"] == 30
    assert set(fields(program("POST", "/sessions", json=LAUNCH | body))) == {"template"}
    wrong = program("POST", "/sessions", json=body | {"template": "x"})
    assert fields(wrong) == {"template": "there is no template of this name"}


@pytest.mark.usefixtures("templates")
def test_the_templates_show_whether_they_fit(world: World, program: Api) -> None:
    world.worker.read_partitions()
    small, huge = (program("GET", "/templates").json or {})["templates"]
    assert small == {
        "name": "small",
        "title": "Small",
        "description": "",
        "resources": {
            "cpus": 1,
            "memory": "600m",
            "shared_memory": None,
            "fgpu": None,
            "gpu_kind": None,
        },
        "time_limit": 30,
        "resource_group": None,
        "account": None,
        "qos": None,
        "reservation": None,
        "constraint": None,
        "exclusive": False,
        "place": 0,
        "fits": True,
        "why": "",
    }
    assert (huge["fits"], huge["why"]) == (
        False,
        "64 is too many: the largest node here has 4 cores",
    )


def test_an_estimate(world: World, program: Api) -> None:
    reconciler = world.worker
    reconciler.read_partitions()
    reconciler.read_limits()
    reconciler.poll()
    answer = program("POST", "/sessions/estimate", json=LAUNCH)
    assert answer.status_code == 200, answer.text
    assert answer.json == {
        "estimated_start": "2026-11-20T15:00:00+00:00",
        "reason": "",
        "fits_now": 1,
        "free": {"cpus": 3, "memory": "3g", "fgpu": None},
        "gpu": None,
    }
    assert set(fields(program("POST", "/sessions/estimate", json=LAUNCH | {"count": 0}))) == {
        "count"
    }
    assert world.slurm.jobs == []


def test_a_missing_estimate(world: World, program: Api) -> None:
    world.slurm.down = True
    assert program("POST", "/sessions/estimate", json=LAUNCH).json == {
        "estimated_start": None,
        "reason": "Slurm gives no estimate right now.",
        "fits_now": None,
        "free": {"cpus": None, "memory": None, "fgpu": None},
        "gpu": None,
    }


def test_the_document_has_templates_and_mounts(app: Flask) -> None:
    document: Any = app.test_client().get("/api/v1/openapi.json", base_url=PORTAL).json
    launch = document["components"]["schemas"]["LaunchRequest"]
    assert {"mounts", "template", "image"} <= set(launch["properties"])
    assert "required" not in launch
    assert launch["allOf"] == [
        {"anyOf": [{"required": ["environment"]}, {"required": ["image"]}]},
        {"anyOf": [{"required": ["resources"]}, {"required": ["template"]}]},
    ]
