"""Apps over the REST API: public ones, preferred ports, answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.core.apps.access import AppOptions, public_key
from portal.core.apps.origins import OriginChoice, OriginRequest, OriginUse, claim_origin
from portal.errors import Conflict, InvalidRequest
from tests.support.fakes import World, make_world
from tests.support.sessions import ALICE, REQUEST
from tests.unit.web.conftest import Api, Runner, make_settings

MakeApi = Callable[[str], Api]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal whose apps use a small pool of ports."""
    return make_world(make_settings(tmp_path, apps="ports", apps_ports=[10000, 10003]))


@pytest.fixture
def runner(launched: Callable[..., Runner]) -> Runner:
    """A running session of alice's."""
    found = launched("alice")
    found.ready()
    return found


def ask(api: Api, runner: Runner, app: str, status: int = 200, **body: Any) -> dict[str, Any]:
    """Open an app."""
    answer = api("POST", f"/sessions/{runner.session.id}/apps/{app}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json or {}


def shown(api: Api, runner: Runner, app: str) -> dict[str, Any]:
    """An app in the session's response."""
    session = api("GET", f"/sessions/{runner.session.id}").json or {}
    return next(one for one in session["apps"] if one["name"] == app)


def fields(answer: dict[str, Any]) -> list[str]:
    """The fields named in a refusal."""
    return [error["field"] for error in answer["errors"]]


def test_public_and_private_again(world: World, api: MakeApi, runner: Runner) -> None:
    alice = api("alice")
    before = shown(alice, runner, "board")
    assert (before["url"], before["public"], before["public_since"]) == (None, False, None)
    opened = ask(alice, runner, "board", public=True)
    address = f"http://127.0.0.1:{opened['port']}/"
    assert opened["public"] is True
    assert opened["public_url"] == address
    assert opened["url"].startswith(f"{address}.slipway/enter?ticket=")
    runner("apps/board", {"state": "ready"})
    assert public_key(str(opened["port"])) in world.routes.map
    now = shown(alice, runner, "board")
    assert (now["url"], now["public"]) == (address, True)
    assert now["public_since"] == "2026-11-20T12:00:00+00:00"
    assert "ticket" not in str(now)

    private = ask(alice, runner, "board", public=False)
    assert (private["public"], private["public_url"]) == (False, None)
    assert public_key(str(opened["port"])) not in world.routes.map
    assert shown(alice, runner, "board")["public"] is False


def test_without_the_field_nothing_changes(api: MakeApi, runner: Runner) -> None:
    alice = api("alice")
    port = ask(alice, runner, "board", public=True, preferred_port=10003)["port"]
    assert port == 10003
    again = ask(alice, runner, "board")
    assert (again["public"], again["port"], again["notice"]) == (True, 10003, "")


def test_a_taken_port_is_reported(api: MakeApi, runner: Runner) -> None:
    alice = api("alice")
    ask(alice, runner, "terminal", preferred_port=10001)
    response_json = ask(alice, runner, "board", preferred_port=10001)
    assert response_json["notice"] == f"Port 10001 is taken; it is on port {response_json['port']}."
    assert response_json["port"] != 10001


def test_a_port_that_browsers_refuse_is_never_assigned(tmp_path: Path) -> None:
    world = make_world(make_settings(tmp_path, apps="ports", apps_ports=[10079, 10080]))
    session = world.launch(ALICE, REQUEST)
    with pytest.raises(InvalidRequest, match="browsers do not open port 10080"):
        world.apps.open_app(ALICE, session.id, "board", AppOptions(port=10080))
    assert world.apps.open_app(ALICE, session.id, "board").label == "10079"
    with pytest.raises(Conflict, match="All ports for apps are taken"):
        world.apps.open_app(ALICE, session.id, "terminal")


def test_an_app_on_such_a_port_moves_when_reopened(tmp_path: Path) -> None:
    world = make_world(make_settings(tmp_path, apps="ports", apps_ports=[10079, 10080]))
    session = world.launch(ALICE, REQUEST)
    board = OriginRequest(
        OriginUse("alice", "python", "3.13", "board"), "web", keep=False, may_be_public=True
    )
    bad = claim_origin(None, "10080", board, world.clock(), "")
    world.access_store.assign_origin(
        session.id, None, board, lambda _places: OriginChoice(bad), world.clock()
    )
    assert world.apps.open_app(ALICE, session.id, "board").label == "10079"


def test_closing_makes_private(world: World, api: MakeApi, runner: Runner) -> None:
    alice = api("alice")
    ask(alice, runner, "board", public=True)
    runner("apps/board", {"state": "ready"})
    assert world.routes.map
    assert alice("DELETE", f"/sessions/{runner.session.id}/apps/board").status_code == 204
    assert world.routes.map == {}
    now = shown(alice, runner, "board")
    assert (now["public"], now["state"]) == (False, "ready")


@pytest.mark.parametrize(
    ("wanted", "body", "named"),
    [
        ("terminal", {"public": True}, ["public"]),
        ("board", {"public": "yes"}, ["public"]),
        ("board", {"public": 1}, ["public"]),
        ("board", {"preferred_port": 9}, ["preferred_port"]),
        ("board", {"preferred_port": "10001"}, ["preferred_port"]),
        ("board", {"preferred_port": 0}, ["preferred_port"]),
        ("board", {"asked": "x"}, ["asked"]),
        ("board", {"asked": "x" * 501}, ["asked"]),
        ("board", {"port": 10001}, ["port"]),
        ("any", {"asked": "a\u0000b"}, ["asked"]),
        ("terminal", {"public": True, "preferred_port": 1, "asked": "x"},
         ["public", "preferred_port", "asked"]),
    ],
)  # fmt: skip
def test_invalid_fields_are_named_and_nothing_happens(
    world: World, api: MakeApi, runner: Runner, wanted: str, body: dict[str, Any], named: list[str]
) -> None:
    assert fields(ask(api("alice"), runner, wanted, 422, **body)) == named
    assert world.apps.opened(runner.session.id) == []
    assert world.runners.requests == []


def test_an_app_with_a_prompt_gets_the_answer(world: World, api: MakeApi, runner: Runner) -> None:
    alice = api("alice")
    ask(alice, runner, "any", asked="serve")
    assert world.runners.requests[0][1]["asked"] == "serve"
    ask(alice, runner, "any")
    assert world.runners.stopped == []
    ask(alice, runner, "any", asked="other")
    assert world.runners.stopped == ["any"]
    assert world.runners.requests[1][1]["asked"] == "other"
