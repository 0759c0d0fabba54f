"""Ends, holds and deadlines on the page and in the API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from portal.config import Settings
from portal.core.apps.access import AppState
from portal.core.session.session import Session
from tests.support.fakes import World, make_world
from tests.support.sessions import poll_all
from tests.unit.web.conftest import Api, Browser, Runner, make_settings

Launched = Callable[..., Runner]
MakeApi = Callable[[str], Api]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal with an operator's account."""
    settings = make_settings(tmp_path).model_dump()
    settings["slurm"]["operator"] = "slipway-operator"
    return make_world(Settings.model_validate(settings))


def get(world: World, runner: Runner) -> Session:
    """The session as it is now."""
    found = world.store.get(runner.session.id)
    assert found is not None
    return found


def test_a_failed_start_shows_its_log(world: World, alice: Browser, launched: Launched) -> None:
    runner = launched()
    world.slurm.start(runner.job)
    world.slurm.finish(runner.job, "FAILED", code=70)
    world.slurm.log = b"<script>alert(1)</script>\nSlipway: your disk is full.\n"
    poll_all(world)
    page = alice.get("/sessions?state=other").text
    assert "The session did not start: your disk is full." in page
    assert "Last lines of its log" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page


def test_a_failed_app_shows_its_reason(alice: Browser, launched: Launched) -> None:
    runner = launched()
    runner.ready()
    alice.post(f"/sessions/{runner.session.id}/apps/jupyterlab/open")
    report = {
        "state": "failed",
        "message": "jupyterlab ended before it answered (exit code 3)",
        "log": "no module",
    }
    assert runner("apps/jupyterlab", report).status_code == 200
    page = alice.get("/sessions").text
    assert page.count("JupyterLab did not start: it ended with exit code 3.") == 1
    assert "Notebook did not start" not in page
    assert "no module" in page


def test_a_hold_can_be_released(world: World, alice: Browser, launched: Launched) -> None:
    runner = launched()
    runner.job.reason = "JobHeldUser"
    poll_all(world)
    path = f"/sessions/{runner.session.id}/release"
    page = alice.get("/sessions").text
    assert "</i>Held</span>" in page
    assert f'formaction="{path}"' in page
    assert alice.post(path).status_code == 303
    assert f'formaction="{path}"' not in alice.get("/sessions").text
    runner.job.reason = "JobHeldAdmin"
    poll_all(world)
    refused = alice.post(path, headers=HTMX)
    assert (refused.status_code, refused.text) == (
        409,
        "An administrator holds it. Ask the administrators.",
    )
    assert path not in alice.get("/sessions").text


def test_a_paused_session_has_a_chip(world: World, alice: Browser, launched: Launched) -> None:
    runner = launched()
    runner.ready()
    runner.job.state = "SUSPENDED"
    poll_all(world)
    assert "</i>Paused</span>" in alice.get("/sessions").text


def test_the_end_is_announced_and_can_be_postponed(
    world: World, alice: Browser, bob: Browser, launched: Launched
) -> None:
    runner = launched()
    runner.ready()
    poll_all(world)
    deadline = get(world, runner).deadline
    assert deadline is not None
    page = alice.get("/sessions").text
    assert f'data-deadline="{deadline.isoformat()}"' in page
    assert "data-until" not in page  # far enough away to show no countdown
    assert 'id="ending-' not in page
    assert all(f'name="minutes" value="{value}"' in page for value in ("60", "240", "max"))
    world.clock.advance(minutes=46)
    poll_all(world)
    page = alice.get("/sessions").text
    assert all(f'name="minutes" value="{value}"' in page for value in ("60", "240", "max"))
    path = f"/sessions/{runner.session.id}/extend"
    assert f'formaction="{path}"' in page
    assert path not in bob.get("/sessions").text
    assert bob.post(path).status_code == 404
    answer = alice.post(path, data={"minutes": "60"}, headers=HTMX)
    assert (answer.status_code, "now ends at" in answer.text) == (200, True)
    for wrong in ("0", "soon", "-5", "99999999"):
        assert alice.post(path, data={"minutes": wrong}, headers=HTMX).status_code == 422
    assert runner.job.limit == "2:00:00"
    page = alice.get(f"/sessions?extended={runner.session.id}").text
    assert 'id="ending-' not in page
    assert "now ends at" in page
    assert "now ends at" not in bob.get(f"/sessions?extended={runner.session.id}").text


def test_a_session_that_was_made_unlimited_has_no_limit_and_cannot_be_extended(
    world: World, alice: Browser, api: MakeApi, launched: Launched
) -> None:
    """Neither the limit that was asked for, nor an extension that would be refused."""
    runner = launched(time_limit=90)
    assert runner.ready().status_code == 200
    poll_all(world)
    place = f"/sessions/{runner.session.id}"
    assert "Extend by" in alice.get(place).text
    world.slurm.jobs[-1].limit = "UNLIMITED"
    poll_all(world)
    found = api("alice")("GET", place).json
    assert found is not None
    assert (found["time_limit"], found["unlimited"], found["deadline"]) == (None, True, None)
    page, row = alice.get(place).text, alice.get("/sessions/rows").text
    assert "<dt>Time limit</dt><dd>none</dd>" in page
    assert "no time limit" in row
    assert "Extend by" not in page + row
    assert "limit 1 h" not in page + row


def test_extending_over_the_api(world: World, api: MakeApi, launched: Launched) -> None:
    runner = launched()
    alice, path = api("alice"), f"/sessions/{runner.session.id}/extend"
    assert alice("POST", path).status_code == 409
    runner.ready()
    poll_all(world)
    more = alice("POST", path, json={"minutes": 30})
    assert more.status_code == 200
    assert more.json is not None
    assert more.json["time_limit"] == 90
    assert more.json["deadline"] == (world.clock.now.replace(hour=13, minute=30)).isoformat()
    refused = alice("POST", path, json={"minutes": 1000})
    assert refused.status_code == 422
    assert refused.json is not None
    assert refused.json["errors"][0]["field"] == "minutes"
    for wrong in ({"minutes": 0}, {"minutes": "5"}, {"hours": 1}):
        assert alice("POST", path, json=wrong).status_code == 422
    assert api("bob")("POST", path).status_code == 404
    assert api("admin")("POST", path).status_code == 200


def test_releasing_over_the_api(world: World, api: MakeApi, launched: Launched) -> None:
    runner = launched()
    runner.job.reason = "JobHeldUser"
    poll_all(world)
    path = f"/sessions/{runner.session.id}/release"
    answer = api("alice")("POST", path)
    assert answer.json is not None
    assert (answer.status_code, answer.json["reason"]["code"]) == (200, "None")
    assert api("bob")("POST", path).status_code == 404


def test_data_for_the_notifier(
    world: World, alice: Browser, bob: Browser, launched: Launched
) -> None:
    runner = launched(name="mine1")
    path = f"/sessions/{runner.session.id}/outcome"
    runner.ready()
    poll_all(world)
    assert alice.get(path).json == {
        "over": False, "tell": False, "explained": True, "name": "mine1", "text": "",
    }  # fmt: skip
    assert bob.get(path).status_code == 404
    world.slurm.finish(runner.job, "OUT_OF_MEMORY")
    poll_all(world)
    answer = alice.get(path).json
    assert answer is not None
    assert answer["tell"]
    assert "more memory" in answer["text"]


def test_the_users_own_ends_are_not_notified(
    world: World, alice: Browser, launched: Launched
) -> None:
    runner = launched()
    alice.post("/sessions/end", {"ids": runner.session.id})
    poll_all(world)
    answer = alice.get(f"/sessions/{runner.session.id}/outcome").json
    assert answer is not None
    assert (answer["over"], answer["tell"]) == (True, False)


def test_the_api_has_the_reason_of_a_failed_app(
    api: MakeApi, launched: Launched, world: World
) -> None:
    runner = launched()
    runner.ready()
    api("alice")("POST", f"/sessions/{runner.session.id}/apps/terminal")
    world.reports.note_app(
        get(world, runner), "terminal", AppState.FAILED, "x ended (signal 9)", "l"
    )
    shown = api("alice")("GET", f"/sessions/{runner.session.id}").json
    assert shown is not None
    terminal = next(app for app in shown["apps"] if app["name"] == "terminal")
    assert terminal["message"] == "Terminal has stopped: it ended with signal 9."
    assert terminal["log"] == "l"
