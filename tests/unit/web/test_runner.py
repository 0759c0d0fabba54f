"""Reports accepted from runners, and the authentication of runners."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from portal.core.apps.access import AppState
from portal.core.auth.person import Person
from portal.core.session.session import State
from portal.errors import NotFound
from tests.fakes import APPS, World
from tests.unit.web.conftest import Runner

Launched = Callable[..., Runner]
ALICE = Person("alice", False, "x")
READY: dict[str, object] = {"job_id": "1", "node": "n1", "port": 40123, "csr": "PEM"}
USAGE: dict[str, object] = {
    "cpu_seconds": 1.5,
    "memory_bytes": 123,
    "memory_limit": None,
    "oom_kills": 0,
    "apps": {},
}


def test_ready_certifies_the_gateway_and_names_the_apps(world: World, launched: Launched) -> None:
    runner = launched()
    world.apps.open_app(ALICE, runner.session.id, "jupyterlab")
    answer = runner.ready()
    assert answer.status_code == 200
    assert answer.json is not None
    assert answer.json["certificate"].startswith("certificate of")
    assert [order["name"] for order in answer.json["start"]] == ["jupyterlab"]
    assert world.store.get(runner.session.id).state is State.RUNNING  # type: ignore[union-attr]


@pytest.mark.parametrize("owner", ["alice", "admin"])
def test_apps_found_in_an_image_are_stored(world: World, launched: Launched, owner: str) -> None:
    """M4: for itself; for everybody only if it is an administrator's."""
    runner = launched(owner)
    spec = json.loads(runner.job.spec)
    assert set(spec["detect"]) == set(APPS)
    assert spec["apps"] == ["any", "board", "jupyterlab", "terminal"]
    world.slurm.start(runner.job)
    message = READY | {"apps": ["terminal", "jupyterlab", "elsewhere"]}
    assert runner("ready", message).status_code == 200
    session = world.store.get(runner.session.id)
    assert session is not None
    assert session.apps == ("terminal", "jupyterlab")
    assert [spec.name for spec in world.apps.offered(session)] == ["jupyterlab", "terminal"]
    image = (session.environment, session.version)
    believed = {image: ("terminal", "jupyterlab")} if owner == "admin" else {}
    assert world.access_store.image_apps() == believed
    with pytest.raises(NotFound):
        world.apps.open_app(Person(owner, owner == "admin", "a"), session.id, "notebook")


def test_usage_and_apps_are_stored(world: World, launched: Launched) -> None:
    runner = launched()
    world.apps.open_app(ALICE, runner.session.id, "terminal")
    runner.ready()
    assert runner("usage", USAGE | {"apps": {"terminal": "starting"}}).json == {}
    report = {"state": "failed", "message": "no", "log": "last words"}
    assert runner("apps/terminal", report).json == {}
    (opened,) = world.apps.opened(runner.session.id)
    assert (opened.state, opened.message, opened.log) == (AppState.FAILED, "no", "last words")
    session = world.store.get(runner.session.id)
    assert session is not None
    assert session.memory_used == 123


def test_an_apps_own_details_are_stored(world: World, launched: Launched) -> None:
    runner = launched()
    world.apps.open_app(ALICE, runner.session.id, "terminal")
    runner.ready()
    # A heartbeat may arrive first, without this information.
    runner("usage", USAGE | {"apps": {"terminal": "ready"}})
    runner("apps/terminal", {"state": "ready", "details": "ssh-ed25519 AAAA"})
    (opened,) = world.apps.opened(runner.session.id)
    assert (opened.state, opened.details) == (AppState.READY, "ssh-ed25519 AAAA")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("ready", READY | {"port": 0}, "port"),
        ("ready", READY | {"port": "1"}, "port"),
        ("ready", READY | {"node": "n1; id"}, "node"),
        ("ready", READY | {"job_id": "1 2"}, "job_id"),
        ("ready", READY | {"state": "RUNNING"}, "state"),
        ("ready", {"port": 1}, "job_id"),
        ("ready", READY | {"apps": ["../x"]}, "apps.0"),
        ("usage", USAGE | {"cpu_seconds": -1}, "cpu_seconds"),
        ("usage", USAGE | {"memory_bytes": "much"}, "memory_bytes"),
        ("usage", USAGE | {"apps": {"terminal": "gone"}}, "apps.terminal"),
        ("usage", USAGE | {"owner": "bob"}, "owner"),
        ("apps/terminal", {"state": "wanted"}, "state"),
        ("apps/terminal", {"state": "ready", "log": "x" * 65_537}, "log"),
        ("apps/terminal", {"state": "ready", "details": "x" * 4097}, "details"),
    ],
)
def test_invalid_reports_name_their_field(
    world: World, launched: Launched, path: str, body: dict[str, object], field: str
) -> None:
    runner = launched()
    answer = runner(path, body)
    assert answer.status_code == 422
    assert answer.json and field in [error["field"] for error in answer.json["errors"]]
    assert world.store.get(runner.session.id) == runner.session


@pytest.mark.parametrize("path", ["ready", "usage", "apps/terminal"])
def test_only_the_sessions_own_token_is_accepted(launched: Launched, path: str) -> None:
    hers, his = launched("alice"), launched("bob")
    for authorization in (
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {his.token}",
        f"Basic {hers.token}",
    ):
        assert hers(path, READY, Authorization=authorization).status_code == 401


def test_browsers_never_reach_the_callbacks(launched: Launched) -> None:
    runner = launched()
    answer = runner.client.post(
        f"/runner/v1/sessions/{runner.session.id}/usage",
        json=USAGE,
        base_url="http://localhost:8080",
        headers={"Authorization": f"Bearer {runner.token}"},
    )
    assert answer.status_code == 404


def test_runners_reach_no_other_routes(launched: Launched) -> None:
    runner = launched()
    for path in ("/login", "/api/v1/openapi.json", "/healthz"):
        headers = {"X-Slipway-Frontend": "runners"}
        answer = runner.client.get(path, base_url="http://localhost:8080", headers=headers)
        assert answer.status_code == 404


def test_a_job_on_another_node_is_refused(world: World, launched: Launched) -> None:
    runner = launched()
    world.slurm.start(runner.job, "n2")
    assert runner("ready", READY | {"job_id": str(runner.job.id)}).status_code == 401


def test_callbacks_of_an_ended_session_get_410(world: World, launched: Launched) -> None:
    runner = launched()
    world.sessions.stop(ALICE, runner.session.id)
    assert runner("usage", USAGE).status_code == 410
