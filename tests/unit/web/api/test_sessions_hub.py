"""What a JupyterHub does over the REST API: servers, and a service that acts for users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from sqlmodel import Session as Database
from sqlmodel import select

from portal.core.apps.access import AppState, hub_key
from portal.store.tables import SessionEnvRow
from tests.support.fakes import World
from tests.unit.web.conftest import LAUNCH, Api, Runner

MakeApi = Callable[[str], Api]
PREFIX = "/user/alice/"
HUB: dict[str, Any] = {"prefix": PREFIX, "env": {"JUPYTERHUB_API_TOKEN": "secret1"}}
APPS = ["jupyterlab", "jupyterhub", "terminal"]


@pytest.fixture
def runner(launched: Callable[..., Runner]) -> Runner:
    """A server of alice's in JupyterHub that has just been asked for."""
    return launched("alice", hub=HUB)


def ready(runner: Runner) -> dict[str, Any]:
    """The session's job starts; returns what its runner is told."""
    runner.world.slurm.start(runner.job)
    body = {"job_id": str(runner.job.id), "node": "n1", "port": 40123, "csr": "PEM", "apps": APPS}
    answer = runner("ready", body)
    assert answer.status_code == 200, answer.text
    return answer.json or {}


def stored(world: World, session: str) -> SessionEnvRow | None:
    """A session's row of variables."""
    with Database(world.engine) as db:
        return db.exec(select(SessionEnvRow).where(SessionEnvRow.session == session)).first()


def test_the_server_starts_with_the_session_and_only_it_gets_the_token(
    world: World, runner: Runner
) -> None:
    assert "secret1" not in runner.job.spec
    (start,) = ready(runner)["start"]
    assert (start["name"], start["kind"], start["ready"]) == (
        "jupyterhub",
        "hub",
        "/user/alice/api",
    )
    assert start["env"] == HUB["env"] | {"SLIPWAY_SESSIONS": "http://localhost:8080/sessions"}
    row = stored(world, runner.session.id)
    assert row is not None
    assert "secret1" not in row.hub + row.variables


def test_its_path_leads_to_it_while_it_runs(world: World, runner: Runner, api: MakeApi) -> None:
    ready(runner)
    key = hub_key(runner.session.id)
    assert key not in world.routes.map
    session = world.store.get(runner.session.id)
    assert session is not None
    world.services.app_reports.note_app(session, "jupyterhub", AppState.READY)
    target = f"10.0.0.1@40123@jupyterhub.{runner.session.id}.slipway"
    assert world.routes.map[key] == target
    assert world.routes.paths == {PREFIX: key}
    assert world.services.proxy.check_routes() == 0
    assert world.routes.map == {key: target}
    world.routes.map.clear()
    assert world.services.proxy.check_routes() == 1
    assert world.routes.map == {key: target}
    api("alice")("DELETE", f"/sessions/{runner.session.id}")
    world.services.proxy.check_routes()
    assert key not in world.routes.map


def test_the_token_is_forgotten_when_the_session_is_over(
    world: World, runner: Runner, api: MakeApi
) -> None:
    api("alice")("DELETE", f"/sessions/{runner.session.id}")
    world.slurm.finish(runner.job, "CANCELLED")
    world.worker.poll()
    world.services.housekeeping.forget_hub_env()
    row = stored(world, runner.session.id)
    assert row is not None
    assert row.hub == ""


def test_one_live_session_for_each_path(world: World, runner: Runner, api: MakeApi) -> None:
    again = api("alice")("POST", "/sessions", json=LAUNCH | {"hub": HUB})
    assert again.status_code == 409
    assert runner.session.id in (again.json or {})["detail"]
    other = api("alice")("POST", "/sessions", json=LAUNCH | {"hub": {"prefix": f"{PREFIX}b/"}})
    assert other.status_code == 201
    found = api("alice")("GET", f"/sessions?hub={PREFIX}").json or {}
    assert [one["id"] for one in found["sessions"]] == [runner.session.id]
    assert found["sessions"][0]["hub_prefix"] == PREFIX


def test_nobody_claims_anothers_path(api: MakeApi) -> None:
    answer = api("bob")("POST", "/sessions", json=LAUNCH | {"hub": HUB})
    assert answer.status_code == 422
    assert [one["field"] for one in (answer.json or {})["errors"]] == ["hub.prefix"]


def test_the_portal_does_not_open_it_at_an_address_of_its_own(runner: Runner, api: MakeApi) -> None:
    ready(runner)
    answer = api("alice")("POST", f"/sessions/{runner.session.id}/apps/jupyterhub", json={})
    assert answer.status_code == 409
    assert (answer.json or {})["detail"] == "JupyterHub opens through JupyterHub, at /user/alice/"


def test_other_sessions_do_not_offer_it(launched: Callable[..., Runner], api: MakeApi) -> None:
    plain = launched("alice")
    ready(plain)
    session = api("alice")("GET", f"/sessions/{plain.session.id}").json or {}
    assert "jupyterhub" not in [app["name"] for app in session["apps"]]


# A service that acts for users


@pytest.fixture
def service(app: Flask, world: World) -> Api:
    """A client with the token of a service that may act for alice."""
    secret, _ = world.services.service_tokens.make("root", "hub", ["alice"], [], 30)
    return Api(app.test_client(), secret)


def act(service: Api, user: str, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """Send a request for a user; returns status and body."""
    answer = service(method, path, headers={"Slipway-User": user}, **options)
    return answer.status_code, answer.json


def test_a_service_launches_and_ends_for_a_user(world: World, service: Api) -> None:
    status, made = act(service, "alice", "POST", "/sessions", json=LAUNCH | {"hub": HUB})
    assert status == 201
    session = made["sessions"][0]
    assert session["owner"] == "alice"
    assert act(service, "alice", "GET", f"/sessions/{session['id']}")[0] == 200
    assert act(service, "alice", "DELETE", f"/sessions/{session['id']}")[0] == 202


@pytest.mark.parametrize(
    ("user", "status"), [("bob", 403), ("root", 403), ("nobody", 403), ("", 403), ("x" * 65, 403)]
)
def test_for_nobody_else(service: Api, user: str, status: int) -> None:
    assert act(service, user, "GET", "/sessions")[0] == status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/tokens"),
        ("POST", "/tokens"),
        ("GET", "/jobs"),
        ("GET", "/admin/people"),
        ("GET", "/me/ssh-keys"),
    ],
)
def test_some_things_only_the_users_do(service: Api, method: str, path: str) -> None:
    status, body = act(service, "alice", method, path, json={} if method == "POST" else None)
    assert (status, body["detail"]) == (403, "A service cannot do this for a user.")


def test_its_token_alone_is_nobodys(service: Api) -> None:
    assert service("GET", "/sessions").status_code == 401


def test_a_users_token_acts_for_nobody(api: MakeApi) -> None:
    assert act(api("alice"), "alice", "GET", "/sessions")[0] == 401


def test_a_service_opens_no_apps(service: Api, runner: Runner) -> None:
    ready(runner)
    path = f"/sessions/{runner.session.id}/apps/jupyterlab"
    status, body = act(service, "alice", "POST", path, json={})
    assert (status, body["detail"]) == (403, "A service cannot open apps for a user.")
