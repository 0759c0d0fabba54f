"""Where sessions run in their owner's own home directory: nothing is asked for, nothing is lost."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask

from portal.core.session.session import Home, Session
from portal.core.session_job.description import JobSettings
from tests.support.batch_scripts import TEMPLATE
from tests.support.fakes import World, make_world
from tests.support.sessions import ALICE
from tests.unit.web.conftest import Api, Browser, Runner, make_settings

MakeApi = Callable[[str], Api]
Launched = Callable[..., Runner]
FORM = {"image": "python/3.12", "resources.cpus": "1", "resources.memory": "600 MB"}
READ_ONLY_HOME = [{"folder": "home", "read_only": True}]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A site whose sessions run in their owners' homes."""
    settings = make_settings(tmp_path)
    sessions = settings.sessions.model_copy(update={"home": "persistent"})
    return with_script(make_world(settings.model_copy(update={"sessions": sessions})))


def with_script(world: World) -> World:
    """The same with the real batch script, and dotfiles."""
    launcher = world.services.launcher
    launcher._job_settings = dataclasses.replace(
        launcher._job_settings, template=TEMPLATE, dotfiles=(".vimrc",)
    )
    return world


def live(world: World) -> Session:
    """The only session."""
    [session] = world.store.live()
    return session


def set_home(world: World, home: Home) -> None:
    """Change the setting of the running portal's launcher, as a restart would."""
    launcher = world.services.launcher
    rules: JobSettings = launcher._job_settings
    launcher._job_settings = dataclasses.replace(rules, home=home)


def test_a_launch_without_a_folder_does_not_ask(world: World, alice: Browser) -> None:
    assert alice.post("/sessions", FORM).status_code == 303
    session = live(world)
    assert (session.home, session.mounts) == (Home.PERSISTENT, ())
    [job] = world.slurm.jobs
    assert '--home "$physical":"$home"' in job.script
    assert "install -D" not in job.script, "no dotfiles are copied"
    assert json.loads(job.spec)["count_home"] is False


def test_the_wizard_says_where_files_are_and_warns_of_nothing(world: World, alice: Browser) -> None:
    world.slurm.files["/home/alice/storage/climate/"] = b""
    page = alice.get("/sessions/new").text
    assert "Your home directory in the session is the one on the cluster." in page
    assert "data-own-home" in page
    form = page.partition('id="wizard"')[2].partition("</form>")[0]
    assert "deleted" not in form
    listed = alice.get("/sessions/new/folders").text
    assert "<code><bdi>~/storage/climate</bdi></code>" in listed
    assert 'value="home"' not in listed
    review = alice.post("/sessions/new/review", FORM, headers={"HX-Request": "true"}).text
    assert "your home directory on the cluster" in review
    assert "deleted" not in review


def test_a_preset_without_a_folder_does_not_ask(world: World, alice: Browser) -> None:
    alice.post("/presets", FORM | {"preset": "my work"})
    assert "data-no-folder=" not in alice.get("/presets").text
    assert alice.post("/presets/my work/launch", {"key": "k"}).status_code == 303
    assert live(world).home is Home.PERSISTENT


@pytest.mark.parametrize(
    ("storage", "path", "workdir"),
    [
        ("storage", "~/storage/climate", "storage/climate"),
        ("/lustre/{user}", "/lustre/alice/climate", "/lustre/alice/climate"),
    ],
)
def test_chosen_folders_are_where_the_cluster_has_them(
    world: World, api: MakeApi, alice: Browser, storage: str, path: str, workdir: str
) -> None:
    world.slurm.files["/home/alice/storage/climate/"] = b""
    sessions = world.services.settings.sessions
    object.__setattr__(sessions, "storage", storage)
    rules = world.services.launcher._job_settings
    world.services.launcher._job_settings = dataclasses.replace(rules, storage=storage)
    body = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
    made = api("alice")("POST", "/sessions", json=body | {"mounts": ["climate"]}).json
    assert made is not None
    [session] = made["sessions"]
    assert session["mounts"] == [{"folder": "climate", "read_only": False, "path": path}]
    assert session["home"]["kind"] == "persistent"
    assert json.loads(world.slurm.jobs[0].spec)["workdir"] == workdir
    page = alice.get(f"/sessions/{session['id']}").text
    assert f"<code><bdi>{path}</bdi></code>" in page
    assert "the home directory on the cluster" in page
    assert "Your home directory and climate stay." in page


def test_the_home_itself_cannot_be_read_only(world: World, api: MakeApi, alice: Browser) -> None:
    body = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
    answer = api("alice")("POST", "/sessions", json=body | {"mounts": READ_ONLY_HOME})
    assert answer.status_code == 422
    assert answer.json is not None
    assert [error["field"] for error in answer.json["errors"]] == ["mounts.0"]
    shown = alice.post("/sessions", FORM | {"mount": "home", "read_only": "home"})
    assert shown.status_code == 422
    assert "it is never read-only" in shown.text
    assert world.store.live() == []
    # It is not offered any more, so that the next attempt succeeds.
    assert not re.search(r'name="mount" value="home"', shown.text)


def test_mounting_the_home_as_elsewhere_changes_nothing(world: World, launched: Launched) -> None:
    """Presets and programs of before the setting was changed go on working."""
    runner = launched("alice", mounts=["home"])
    assert json.loads(runner.job.spec)["workdir"] == ""
    assert runner.session.mounts[0].folder == "home"


def test_every_later_submission_of_a_session_has_its_own_kind(
    world: World, launched: Launched, alice: Browser, app: Flask
) -> None:
    world.slurm.lose_answer = True
    session = launched("alice").session
    world.slurm.lose_answer = False
    world.slurm.jobs.clear()
    set_home(world, Home.SESSION)
    world.services.launcher.resubmit(session)
    [job] = world.slurm.jobs
    assert '--home "$physical":"$home"' in job.script
    assert Runner(app.test_client(), world, session).ready().status_code == 200
    assert "Your home directory stays." in alice.get(f"/sessions/{session.id}").text
    # A requeued one: its script is Slurm's, its instructions are new.
    spec = json.loads(world.services.launcher._spec(session, "token", {}))
    assert spec["count_home"] is False


def test_launching_again_uses_the_sites_setting(
    world: World, launched: Launched, alice: Browser
) -> None:
    first = launched("alice").session
    set_home(world, Home.SESSION)
    assert alice.post(f"/sessions/{first.id}/relaunch", {"key": "k"}).status_code == 303
    kinds = {session.id: session.home for session in world.store.live()}
    assert kinds.pop(first.id) is Home.PERSISTENT
    assert list(kinds.values()) == [Home.SESSION]


def test_the_help_page_says_what_is_kept(alice: Browser) -> None:
    text = alice.get("/help").text
    assert "Your home directory in a session is your home directory on the cluster." in text
    assert "Everything else in a session is deleted" not in text


def test_the_default_is_a_new_home(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    usual = with_script(make_world(make_settings(tmp_path / "usual")))
    body = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
    checks = usual.services.launch_checks
    [session] = usual.services.launcher.launch(checks.prepare(ALICE, body))
    assert session.home is Home.SESSION
    assert '--home "$session/home":/home/alice' in usual.slurm.jobs[0].script
    assert "install -D" in usual.slurm.jobs[0].script
