"""Rules about the site's images hold for their files: hidden and retired ones as own images."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from portal.config.images import ImageSettings
from portal.core.admin.images import ImageRequest
from portal.core.auth.logins import OIDC, Proof
from portal.core.auth.person import Person
from tests.support.fakes import World, make_world
from tests.support.sif import sif
from tests.support.slurm import FakeJob
from tests.unit.web.conftest import Api, Browser, make_settings

MakeApi = Callable[[str], Api]
ADMIN = Person("admin", True, "a")
NOT_OFFERED = "this is one of the site's images: it is not offered to you"
RETIRED = "this is one of the site's images: tool 1 was retired by an administrator"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The site's images: tool/2, whose file was replaced once, tool/1, which is retired, tool/3."""
    for version in ("1", "2", "3"):
        place = tmp_path / "images" / "tool" / version
        place.mkdir(parents=True)
        (place / "image.toml").write_text(f'title = "Tool {version}"\n')
        file = f"image-{version * 16}.sif"
        (place / file).write_bytes(sif(version.encode(), id=version.encode() * 16))
        (place / "image.sif").symlink_to(file)
    (tmp_path / "images/tool/2/image-0000000000000000.sif").write_bytes(sif(b"0", id=b"0" * 16))
    (tmp_path / "images/tool/1/retired").touch()
    return tmp_path / "images"


@pytest.fixture
def world(tmp_path: Path, folder: Path) -> World:
    own = ImageSettings(own="files", folders=(str(folder),))
    settings = make_settings(tmp_path).model_copy(update={"images": own})
    return make_world(settings, images=folder)


def hide(world: World) -> None:
    """Show tool/2 to bob only."""
    services, rule = world.services, ImageRequest(seen_by="some", users=("bob",))
    services.administration.save_image_rule(ADMIN, services.catalog(), "tool", "2", rule)


def body(image: Path | str) -> dict[str, Any]:
    return {"image": str(image), "resources": {"memory": "600m"}}


def answer(api: Api, image: Path | str) -> str:
    """What a launch says that names this file; "" if it is accepted."""
    found = api("POST", "/sessions", json=body(image))
    if found.status_code == 201:
        return ""
    ((field, text),) = [(e["field"], e["message"]) for e in found.get_json()["errors"]]
    assert (found.status_code, field) == (422, "image")
    return str(text)


def refused(job: FakeJob) -> dict[str, list[str]]:
    """The files that a job's image must not be: ids and reasons by path."""
    return {path: rest for path, *rest in json.loads(job.spec).get("refused_images", [])}


def test_the_path_of_a_hidden_image_is_refused_as_its_name_is(
    api: MakeApi, world: World, folder: Path
) -> None:
    hide(world)
    place = folder / "tool" / "2"
    files = [place / f"image-{'2' * 16}.sif", place / f"image-{'0' * 16}.sif", place / "image.sif"]
    assert [answer(api("alice"), file) for file in files] == [NOT_OFFERED] * 3
    assert answer(api("alice"), folder / "tool" / "3" / "image.sif") == ""
    for who in ("bob", "admin"):
        assert [answer(api(who), file) for file in files] == [""] * 3


def spoil(world: World, folder: Path, version: str) -> None:
    """Make an image's description invalid, and let the catalog see that."""
    (folder / "tool" / version / "image.toml").write_text('title = "Tool')
    world.services.catalog._cached = None  # type: ignore[attr-defined]
    assert world.services.catalog().image("tool", version) is None


def test_rules_hold_for_files_whose_description_is_invalid(
    api: MakeApi, world: World, folder: Path
) -> None:
    hide(world)
    for version in ("1", "2", "3"):
        spoil(world, folder, version)
    places = {version: folder / "tool" / version / "image.sif" for version in ("1", "2", "3")}
    for who, hidden in (("alice", NOT_OFFERED), ("bob", ""), ("admin", "")):
        answers = [answer(api(who), file) for file in places.values()]
        assert answers == [RETIRED, hidden, ""]


def test_the_path_of_a_retired_image_is_refused_to_everybody(api: MakeApi, folder: Path) -> None:
    for who in ("alice", "admin"):
        assert answer(api(who), folder / "tool" / "1" / "image.sif") == RETIRED


def test_the_job_is_told_what_its_image_must_not_be(
    api: MakeApi, world: World, folder: Path
) -> None:
    hide(world)
    two, one = folder / "tool/2", folder / "tool/1"
    old = {
        str(one / name): [(b"1" * 16).hex(), "tool 1 was retired by an administrator"]
        for name in (f"image-{'1' * 16}.sif", "image.sif")
    }
    hidden = {
        str(two / name): [(id * 16).hex(), "it is not offered to you"]
        for name, id in (
            (f"image-{'2' * 16}.sif", b"2"),
            (f"image-{'0' * 16}.sif", b"0"),
            ("image.sif", b"2"),
        )
    }
    assert answer(api("alice"), "images/mine.sif") == ""
    assert refused(world.slurm.jobs[-1]) == {**hidden, **old}
    for who in ("bob", "admin"):
        assert answer(api(who), "images/mine.sif") == ""
        assert refused(world.slurm.jobs[-1]) == old
    named = {"environment": "tool", "version": "3", "resources": {"memory": "600m"}}
    assert api("alice")("POST", "/sessions", json=named).status_code == 201
    assert refused(world.slurm.jobs[-1]) == {}


def test_administrators_by_the_providers_groups_have_hidden_images_at_the_node_too(
    app: Flask, world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(world)
    logins, issuer = world.services.logins, "https://id.example.org"
    monkeypatch.setattr(logins, "_admin_issuer", issuer)
    _, login = logins.open_browser("alice", Proof(OIDC, issuer, "u1", admin=True))
    token, _ = logins.make_token(logins.person(login), "all", None, 1)
    assert answer(Api(app.test_client(), token), folder / "tool/2/image.sif") == ""
    assert {why for _, why in refused(world.slurm.jobs[-1]).values()} == {RETIRED.split(": ")[1]}


def test_a_requeued_session_keeps_an_image_that_was_retired_since(
    api: MakeApi, world: World, folder: Path
) -> None:
    hide(world)
    assert answer(api("alice"), "images/mine.sif") == ""
    job = world.slurm.jobs[-1]
    world.slurm.start(job)
    world.worker.poll()
    world.slurm.requeue(job)
    world.worker.poll()
    world.worker.prepare_requeued()
    assert {reason for _, reason in refused(job).values()} == {"it is not offered to you"}


def test_what_a_permitted_image_contains_as_well_is_not_refused(
    api: MakeApi, world: World, folder: Path
) -> None:
    (folder / "tool/3/image.sif").unlink()
    (folder / "tool/3/image.sif").symlink_to(folder / "tool/2" / f"image-{'2' * 16}.sif")
    hide(world)
    assert answer(api("alice"), "images/mine.sif") == ""
    hidden = {path for path, (_, why) in refused(world.slurm.jobs[-1]).items() if "offered" in why}
    assert hidden == {str(folder / "tool/2" / f"image-{'0' * 16}.sif")}


def test_copies_of_launches_and_presets_are_asked_again(
    api: MakeApi, world: World, folder: Path
) -> None:
    alice = api("alice")
    launched = alice("POST", "/sessions", json=body(folder / "tool/2/image.sif"))
    session = launched.get_json()["sessions"][0]["id"]
    saved = alice("POST", f"/sessions/{session}/preset", json={"name": "mine"})
    assert saved.status_code == 201
    hide(world)
    for path in (f"/sessions/{session}/relaunch", "/presets/mine/launch"):
        again = alice("POST", path)
        assert again.status_code == 422
        assert again.get_json()["errors"] == [{"field": "image", "message": NOT_OFFERED}]


def test_batch_jobs_of_the_composer(api: MakeApi, world: World, folder: Path) -> None:
    hide(world)
    file = folder / "tool" / "2" / "image.sif"
    for name in (file, f"{folder}/tool/../tool/2/./image.sif"):
        job = {"script": "#!/bin/sh\n", "image": str(name)}
        found = api("alice")("POST", "/jobs", json=job)
        assert found.status_code == 422
        assert found.get_json()["errors"] == [{"field": "image", "message": NOT_OFFERED}]
        assert api("bob")("POST", "/jobs", json=job).status_code == 201


def test_refused_files_are_not_proposed(app: Flask, world: World, folder: Path) -> None:
    hide(world)
    files = [str(folder / "tool" / name) for name in ("2/image-2222222222222222.sif", "3/a.sif")]
    (folder / "tool/3/a.sif").touch()
    shown = {
        who: Browser(app).log_in(who).get("/sessions/new/images").text for who in ("alice", "bob")
    }
    assert [file in shown["alice"] for file in files] == [False, True]
    assert [file in shown["bob"] for file in files] == [True, True]
