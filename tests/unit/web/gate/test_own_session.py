"""The reserved path at an app's origin: for the owner's browser, and for others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from portal.config import Settings
from portal.web.gate import own_session
from portal.web.http.rate_limit import RateLimiter
from tests.support.fakes import World, make_world
from tests.support.sessions import USAGE_REPORT, poll_all
from tests.unit.web.app_pages import ADDRESS, opened
from tests.unit.web.conftest import PORTAL, Api, Browser, Runner, make_settings

Launched = Callable[..., Runner]


@pytest.fixture(autouse=True)
def fresh_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request of an earlier test counts."""
    monkeypatch.setattr(own_session, "pace", RateLimiter(lambda: 0.0))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal with an operator's account, which knows Slurm's limits."""
    settings = make_settings(tmp_path).model_dump()
    settings["slurm"]["operator"] = "slipway-operator"
    found = make_world(Settings.model_validate(settings))
    poll_all(found)
    return found


@pytest.fixture
def runner(launched: Launched) -> Runner:
    """Alice's running session."""
    found = launched("alice", name="secretproject", mounts=[{"folder": "home"}])
    found.ready()
    return found


def read(browser: Browser) -> dict[str, Any]:
    """What the extension reads."""
    answer = browser.get(ADDRESS)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert not [name for name in answer.headers if name[0].startswith("Access-Control")]
    found: dict[str, Any] = answer.json  # type: ignore[assignment]
    return found


def extend(browser: Browser, body: object, **changes: str | None) -> TestResponse:
    """What the extension sends, with changed headers."""
    headers = {"Origin": browser.base, "X-Slipway": "extend", "Sec-Fetch-Site": "same-origin"}
    sent = {k: v for k, v in (headers | changes).items() if v is not None}
    address = f"{ADDRESS}/extend"
    return browser.client.post(address, json=body, headers=sent, base_url=browser.base)


def test_the_owner_reads_the_end_and_extends(
    world: World, app: Flask, alice: Browser, runner: Runner
) -> None:
    inside = opened(app, alice, runner)
    world.worker.poll()
    found = read(inside)
    assert found["name"] == "secretproject"
    assert found["kept"].startswith("Your home directory stays.")
    assert [choice["minutes"] for choice in found["extend"]] == [60, 240, 420]
    assert found["extend"][2]["label"] == "as long as possible: 7 h more"
    assert found["ended"].startswith(f"{PORTAL}/open/")
    again = alice.get(found["ended"].removeprefix(PORTAL)).headers["Location"]
    assert again.startswith(f"{inside.base}/.slipway/enter?")
    assert not found["ending"]
    answer = extend(inside, {"minutes": 240})
    assert answer.status_code == 200, answer.text
    assert answer.json
    assert answer.json["ends"] > found["ends"]
    assert [choice["minutes"] for choice in answer.json["extend"]] == [60, 180]
    refused = extend(inside, {"minutes": 300})
    assert refused.status_code == 422
    assert "it can get 3 h more" in refused.text
    assert extend(inside, {"minutes": 180}).json["extend"] == []  # type: ignore[index]


def test_it_is_no_use_of_the_session(
    world: World, app: Flask, alice: Browser, runner: Runner
) -> None:
    inside = opened(app, alice, runner)
    before = world.store.get(runner.session.id)
    world.clock.advance(minutes=10)
    read(inside)
    after = world.store.get(runner.session.id)
    assert before
    assert after
    assert after.last_used == before.last_used


def test_strangers_and_visitors_learn_nothing(
    app: Flask, alice: Browser, bob: Browser, runner: Runner
) -> None:
    private = opened(app, alice, runner)
    stranger = Browser(app, private.base)
    for answer in (stranger.get(ADDRESS), extend(stranger, {"minutes": 60})):
        assert answer.status_code == 401
        assert "secretproject" not in answer.text
    opened(app, alice, runner, public=True)
    for answer in (stranger.get(ADDRESS), extend(stranger, {"minutes": 60})):
        assert answer.status_code == 401
        assert "secretproject" not in answer.text
        assert "alice" not in answer.text
    # At the portal's own origin there is no such path.
    assert alice.get(ADDRESS).status_code == 404


def test_a_public_app_cannot_extend(app: Flask, alice: Browser, runner: Runner) -> None:
    inside = opened(app, alice, runner, public=True)
    assert read(inside)["extend"] == []
    assert extend(inside, {"minutes": 60}).status_code == 403


@pytest.mark.parametrize(
    "changes",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": PORTAL},
        {"Origin": "https://evil.example.org"},
        {"X-Slipway": None},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_origins_extend_nothing(
    world: World, app: Flask, alice: Browser, runner: Runner, changes: dict[str, str | None]
) -> None:
    inside = opened(app, alice, runner)
    assert extend(inside, {"minutes": 60}, **changes).status_code == 403
    assert not [line for line in world.slurm.commands if "TimeLimit=" in line]


def test_another_origin_cannot_read_it(app: Flask, alice: Browser, runner: Runner) -> None:
    inside = opened(app, alice, runner)
    answer = inside.get(ADDRESS, headers={"Sec-Fetch-Site": "same-site"})
    assert answer.status_code == 403
    assert "secretproject" not in answer.text


@pytest.mark.parametrize("body", [{}, {"minutes": 0}, {"minutes": "60"}, {"hours": 1}, []])
def test_bad_requests_change_nothing(
    world: World, app: Flask, alice: Browser, runner: Runner, body: object
) -> None:
    inside = opened(app, alice, runner)
    assert extend(inside, body).status_code == 422
    assert not [line for line in world.slurm.commands if "TimeLimit=" in line]


def test_requests_are_limited(app: Flask, alice: Browser, runner: Runner) -> None:
    inside = opened(app, alice, runner)
    answers = [inside.get(ADDRESS).status_code for _ in range(12)]
    assert answers == [200] * 10 + [429] * 2
    assert [extend(inside, {}).status_code for _ in range(6)] == [422] * 5 + [429]


def test_requests_of_other_sites_do_not_use_up_the_owners_rate(
    app: Flask, alice: Browser, runner: Runner
) -> None:
    inside = opened(app, alice, runner)
    foreign = [extend(inside, {}, Origin="https://evil.example.org") for _ in range(9)]
    assert {answer.status_code for answer in foreign} == {403}
    assert extend(inside, {}).status_code == 422


def test_a_kill_is_told_and_after_the_end_there_is_nothing(
    world: World, app: Flask, alice: Browser, runner: Runner, api: Callable[[str], Api]
) -> None:
    inside = opened(app, alice, runner)
    assert read(inside)["killed"] == 0
    runner("usage", USAGE_REPORT | {"oom_kills": 1, "oom_program": "python3 (a notebook kernel)"})
    told = read(inside)
    assert told["killed_text"] == (
        "python3 (a notebook kernel) was stopped: it wanted more than the 600 MB of this session."
    )
    api("alice")("DELETE", f"/sessions/{runner.session.id}")
    world.worker.poll()
    assert inside.get(ADDRESS).status_code == 401
    assert inside.get(f"{ADDRESS}?session={runner.session.id}").status_code == 410
    assert inside.get(f"{ADDRESS}?session=another").status_code == 401


def test_a_lost_login_is_no_end(app: Flask, alice: Browser, runner: Runner) -> None:
    inside = opened(app, alice, runner)
    told = read(inside)
    assert told["id"] == runner.session.id
    alice.post("/logout")
    assert inside.get(f"{ADDRESS}?session={told['id']}").status_code == 401
    assert inside.get(f"{ADDRESS}?session=another").status_code == 401
