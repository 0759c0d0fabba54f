"""Own images over the REST API and in the wizard: asked for, refused, shown, kept secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlmodel import Session as Database
from sqlmodel import select

from portal.adapters.ssh.transport import Completed
from portal.config.images import ImageSettings
from portal.errors import Unavailable
from portal.store.tables import RegistryLoginRow
from tests.support.fakes import World, make_world
from tests.support.slurm import FakeJob
from tests.unit.web.conftest import Api, Browser, Runner, make_settings

MakeApi = Callable[[str], Api]
HOST = "registry.example.org"
REFERENCE = f"docker://{HOST}/team/tool:1.2"
LOGIN = {"user": "team", "password": "s3cret $x"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    images = ImageSettings(own="registries", registries=(HOST,))
    return make_world(make_settings(tmp_path).model_copy(update={"images": images}))


def launch(api: Api, image: str, **more: Any) -> dict[str, Any]:
    body = {"image": image, "resources": {"memory": "600m"}, **more}
    answer = api("POST", "/sessions", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.get_json()["sessions"][0]
    return found


def job_of(world: World, session: dict[str, Any]) -> FakeJob:
    return next(job for job in world.slurm.jobs if job.name == session["id"])


def test_a_session_of_an_own_image_and_its_copy(api: MakeApi, world: World) -> None:
    alice = api("alice")
    found = launch(alice, "images/mine.sif")
    assert (found["environment"], found["version"]) == ("own", "mine.sif")
    assert found["image"] == "images/mine.sif"
    copy = alice("POST", f"/sessions/{found['id']}/relaunch")
    assert copy.get_json()["sessions"][0]["image"] == "images/mine.sif"
    saved = alice("POST", f"/sessions/{found['id']}/preset", json={"name": "mine"})
    assert saved.get_json()["launch"]["image"] == "images/mine.sif"
    assert "environment" not in saved.get_json()["launch"]
    assert alice("POST", "/presets/mine/launch").status_code == 201
    assert alice("GET", f"/sessions/{found['id']}").get_json()["apps"] == []
    assert api("bob")("GET", f"/sessions/{found['id']}").status_code == 404


def test_a_wrong_image_is_the_only_error_about_what_runs(api: MakeApi) -> None:
    body = {"image": "docker://evil.example.org/a", "resources": {"memory": "600m", "cpus": 0}}
    errors = api("alice")("POST", "/sessions", json=body).get_json()["errors"]
    assert [e["field"] for e in errors] == ["resources.cpus", "image"]
    body["image"] = "no image"
    errors = api("alice")("POST", "/sessions", json=body).get_json()["errors"]
    assert [e["field"] for e in errors] == ["image", "resources.cpus"]


def test_the_login_reaches_the_job_and_nothing_else(api: MakeApi, world: World) -> None:
    alice, now = api("alice"), world.clock().isoformat()
    path = f"/registries/{HOST}"
    assert alice("PUT", path, json=LOGIN).status_code == 201
    assert alice("PUT", path, json=LOGIN).status_code == 200
    shown = alice("GET", "/registries").get_json()
    login = {"registry": HOST, "user": "team", "added": now, "last_used": None}
    assert shown == {"logins": [login], "registries": [HOST]}
    world.clock.advance(minutes=1)
    job = job_of(world, launch(alice, REFERENCE))
    used = alice("GET", "/registries").get_json()["logins"][0]
    assert (used["added"], used["last_used"]) == (now, world.clock().isoformat())
    assert json.loads(job.spec)["registry"] == LOGIN
    assert "s3cret" not in job.script
    assert "registry" not in json.loads(job_of(world, launch(alice, "images/a.sif")).spec)
    with Database(world.engine) as db:
        row = db.exec(select(RegistryLoginRow)).one()
    assert (row.owner, row.host, row.user) == ("alice", HOST, "team")
    assert row.secret.startswith("v1:")

    bob = api("bob")
    assert bob("GET", "/registries").get_json()["logins"] == []
    assert "registry" not in json.loads(job_of(world, launch(bob, REFERENCE)).spec)
    assert bob("DELETE", path).status_code == 404
    assert alice("DELETE", path).status_code == 204
    assert alice("DELETE", path).status_code == 404
    assert "registry" not in json.loads(job_of(world, launch(alice, REFERENCE)).spec)


def test_a_login_for_a_registry_that_is_not_permitted(api: MakeApi) -> None:
    answer = api("alice")("PUT", "/registries/evil.example.org", json=LOGIN)
    assert answer.status_code == 422
    assert answer.get_json()["errors"] == [
        {
            "field": "registry",
            "message": "images from evil.example.org are not permitted here; "
            f"these registries are: {HOST}",
        }
    ]
    wrong = {"user": "a:b", "password": ""}
    errors = api("alice")("PUT", f"/registries/{HOST}", json=wrong).get_json()["errors"]
    assert [e["field"] for e in errors] == ["user", "password"]


def test_progress_is_shown_until_the_container_starts(
    api: MakeApi, world: World, app: Flask
) -> None:
    alice = api("alice")
    session = launch(alice, REFERENCE)
    stored = world.store.get(session["id"])
    assert stored is not None
    runner = Runner(app.test_client(), world, stored)
    world.slurm.start(runner.job)
    world.services.reconciler.poll()

    def shown() -> str:
        text: str = alice("GET", f"/sessions/{session['id']}").get_json()["reason"]["text"]
        return text

    assert shown() == "The container is starting."
    assert runner("progress", {"text": "Pulling: 3 of 7 MiB\u202e."}).status_code == 200
    assert shown() == "Pulling: 3 of 7 MiB."
    advice = alice("GET", f"/sessions/{session['id']}").get_json()["reason"]["advice"]
    assert advice == "Your next session with this image starts at once. To stop, end this one."
    # A pull that goes on is no session that never called back.
    world.clock.advance(minutes=14)
    runner("progress", {"text": "Pulling: 4 of 7 MiB"})
    world.clock.advance(minutes=14)
    world.services.reconciler.poll()
    assert alice("GET", f"/sessions/{session['id']}").get_json()["state"] == "STARTING"
    runner("progress", {"text": ""})
    assert shown() == "The container is starting."
    world.clock.advance(minutes=16)
    world.services.reconciler.poll()
    assert alice("GET", f"/sessions/{session['id']}").get_json()["state"] == "ENDING"


def test_a_lost_submission_is_repeated_with_the_same_image(api: MakeApi, world: World) -> None:
    world.slurm.lose_answer = True
    session = launch(api("alice"), "images/mine.sif")
    world.slurm.lose_answer = False
    world.slurm.jobs.clear()
    world.clock.advance(seconds=90)
    world.services.reconciler.poll()
    assert session["id"] in [job.name for job in world.slurm.jobs]


def test_the_wizard_offers_it_where_the_site_permits_it(alice: Browser, api: MakeApi) -> None:
    launch(api("alice"), "images/lately.sif")
    launch(api("alice"), REFERENCE)
    job = alice.get("/jobs/new").text
    assert f'data-own-file="{REFERENCE}"' in job
    assert "lately.sif" not in job  # jobs name files by their paths
    page = alice.get("/sessions/new").text
    assert 'name="own_image"' in page
    assert '<option value="images/lately.sif">' in page
    form = {"image": "own", "own_image": "images/a.sif", "resources.memory": "1g", "confirmed": "1"}
    assert alice.post("/sessions", form | {"key": "k1"}).status_code == 303
    refused = alice.post("/sessions", form | {"own_image": "/etc/a.sif", "key": "k2"})
    assert refused.status_code == 422
    assert "Choose a file in one of your storage folders" in refused.text
    assert 'value="/etc/a.sif"' in refused.text
    assert "images/a.sif" in alice.get("/sessions/new").text


def test_the_forms_propose_the_files_that_the_user_has(alice: Browser, world: World) -> None:
    page = "/sessions/new/images"
    assert "There is no .sif file in your storage folders yet." in alice.get(page).text
    for name in ("images/mine.sif", "images/two words.sif", "<b>/x.sif"):
        world.slurm.files[f"/home/alice/storage/{name}"] = bytes(5 << 20)
    text = alice.get(page).text
    assert 'data-own-file="images/mine.sif"' in text
    assert "5 MB" in text
    assert "two words" not in text  # no launch would accept it
    assert "<b>" not in text
    by_path = alice.get(f"{page}?paths").text
    assert 'data-own-file="/home/alice/storage/images/mine.sif"' in by_path


def test_files_that_cannot_be_listed_are_no_error(
    alice: Browser, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> Completed:
        raise Unavailable("The login node does not answer.")

    monkeypatch.setattr(world.slurm, "run", down)
    answer = alice.get("/sessions/new/images")
    assert answer.status_code == 200
    assert "Your image files cannot be listed right now" in answer.text
