"""Logins and tokens, by API and by page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from portal.core.auth.logins import BROWSER
from portal.core.session.session import State
from tests.support.fakes import World
from tests.unit.web.conftest import LAUNCH, PORTAL, Api, Browser

MakeApi = Callable[[str], Api]


def new_token(api: Api, **body: Any) -> dict[str, Any]:
    """A new token."""
    answer = api("POST", "/tokens", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json or {}
    return found


def test_a_new_token_is_returned_with_its_properties(world: World, api: MakeApi) -> None:
    alice = api("alice")
    token = new_token(alice, name="cron", scopes=["read"], days=3)
    assert token.pop("token").startswith("slipway_")
    now = world.clock().isoformat()
    assert (token.pop("id"), token.pop("expires")) is not None
    assert token == {
        "name": "cron", "scopes": ["read"], "created": now, "last_used": now,
        "address": "127.0.0.1", "current": False, "purpose": None,
    }  # fmt: skip
    listed = (alice("GET", "/tokens").json or {})["tokens"]
    assert {t["name"]: t["current"] for t in listed} == {"API token": True, "cron": False}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "username"),
        ({"username": "alice"}, "password"),
        ({"password": "x"}, "username"),
        ({"username": "alice", "password": "wonderland", "days": 91}, "days"),
        ({"username": "alice", "password": "wonderland", "days": 0}, "days"),
        ({"username": "alice", "password": "wonderland", "scopes": []}, "scopes"),
        ({"username": "alice", "password": "wonderland", "scopes": ["admin"]}, "scopes"),
        ({"username": "alice", "password": "wonderland", "name": " "}, "name"),
        ({"username": "alice", "password": "wonderland", "purpose": "mine"}, "purpose"),
    ],
)
def test_an_invalid_request_names_its_field(
    app: Flask, world: World, body: dict[str, Any], field: str
) -> None:
    answer = app.test_client().post("/api/v1/tokens", json=body, base_url=PORTAL)
    assert answer.status_code == 422
    assert [e["field"].partition(".")[0] for e in (answer.json or {})["errors"]] == [field]
    assert world.services.logins.logins_of("alice") == []
    assert "wonderland" not in answer.text


def test_a_password_together_with_a_token_is_refused(api: MakeApi) -> None:
    answer = api("alice")("POST", "/tokens", json={"username": "bob", "password": "builder"})
    assert (answer.status_code, (answer.json or {})["errors"][0]["field"]) == (422, "username")


def test_all_are_revoked_but_browsers_stay(api: MakeApi, alice: Browser) -> None:
    program, other = api("alice"), api("bob")
    new_token(program, name="x")
    assert program("DELETE", "/tokens").status_code == 204
    assert program("GET", "/me").status_code == 401
    assert other("GET", "/me").status_code == 200
    assert alice.get("/sessions").status_code == 200


def test_administrators_revoke_all_logins_of_a_user(api: MakeApi, alice: Browser) -> None:
    admin, program = api("admin"), api("alice")
    people = (admin("GET", "/admin/people").json or {})["people"]
    assert [(p["name"], p["browsers"], p["tokens"]) for p in people] == [
        ("admin", 0, 1),
        ("alice", 1, 1),
    ]
    logins = (admin("GET", "/admin/people/alice/logins").json or {})["logins"]
    (browser,) = [login for login in logins if login["kind"] == BROWSER]
    path = "/admin/people/alice/logins"
    assert admin("DELETE", f"{path}/{browser['id']}").status_code == 204
    assert admin("DELETE", f"{path}/{browser['id']}").status_code == 404
    assert alice.get("/sessions").status_code == 303
    assert program("GET", "/me").status_code == 200
    assert admin("DELETE", path).status_code == 204
    assert program("GET", "/me").status_code == 401
    assert (admin("GET", path).json or {})["logins"] == []


def test_the_page_creates_shows_once_and_revokes(alice: Browser, app: Flask) -> None:
    form = {"name": "laptop <b>", "days": "5", "scopes": ["read", "write"]}
    page = alice.post("/account/tokens", form)
    found = re.search(r"slipway_[\w-]+", page.text)
    assert found is not None
    assert page.headers["Cache-Control"] == "no-store"
    assert "laptop &lt;b&gt;" in page.text
    program = Api(app.test_client(), found[0])
    assert program("GET", "/me").status_code == 200
    page = alice.get("/account")
    assert found[0] not in page.text
    ids = re.findall(r'data-login="(\w+)"', page.text)
    assert len(ids) == 2
    for identifier in ids[1:]:
        alice.post(f"/account/revoke/{identifier}")
    assert program("GET", "/me").status_code == 401
    assert alice.post("/account/revoke/none").status_code == 404
    assert alice.post("/account/log-out-everywhere").headers["Location"] == "/login"
    assert alice.get("/account").status_code == 303


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "Use 1 to 80 printable"),
        ({"days": "0"}, "Choose 1 to 90 days"),
        ({"days": "²"}, "Choose 1 to 90 days"),
        ({"days": "9" * 4000}, "Choose 1 to 90 days"),
        ({"scopes": []}, "Choose at least one"),
        ({"scopes": ["admin"]}, "Admin is more than you may give"),
    ],
)
def test_the_form_shows_errors(
    world: World, alice: Browser, changes: dict[str, Any], message: str
) -> None:
    answer = alice.post(
        "/account/tokens", {"name": "kept", "days": "5", "scopes": ["read"]} | changes
    )
    assert answer.status_code == 422
    assert message in answer.text
    assert [login.kind for login in world.services.logins.logins_of("alice")] == [BROWSER]


def test_administrators_pages(app: Flask, alice: Browser, api: MakeApi) -> None:
    program, admin = api("alice"), Browser(app).log_in("admin")
    assert 'href="/admin/people/alice"' in admin.get("/admin/people").text
    page = admin.get("/admin/people/alice").text
    assert len(re.findall(r"data-login=", page)) == 2
    assert "Nobody" not in admin.get("/admin/people/nobody").text
    answer = admin.post("/admin/people/alice/revoke")
    assert answer.headers["Location"] == "/admin/people"
    assert program("GET", "/me").status_code == 401
    assert alice.get("/account").status_code == 303


def test_a_relaunch_reports_forgotten_values(world: World, api: MakeApi) -> None:
    alice = api("alice")
    body = LAUNCH | {"env": {"A": "secret"}}
    first = (alice("POST", "/sessions", json=body).json or {})["sessions"][0]["id"]
    alice("DELETE", f"/sessions/{first}")
    world.slurm.finish(world.slurm.jobs[0], "CANCELLED")
    world.force(first, state=State.FINISHED, ended=world.clock())
    world.clock.advance(days=31)
    world.store.forget_variables(world.clock())
    answer = alice("POST", f"/sessions/{first}/relaunch")
    assert answer.status_code == 409
    assert "(A) are deleted" in (answer.json or {})["detail"]


def test_no_response_or_log_repeats_a_password(
    app: Flask, caplog: pytest.LogCaptureFixture
) -> None:
    client = app.test_client()
    for body in ({"username": "alice", "password": 4711}, {"username": 1, "password": "pass-4711"}):
        answer = client.post("/api/v1/tokens", json=body, base_url=PORTAL)
        assert answer.status_code == 422
        assert "4711" not in answer.text
    assert "4711" not in caplog.text


def test_jupyterhubs_token_is_listed_with_its_purpose(alice: Browser, app: Flask) -> None:
    body = {"username": "alice", "password": "wonderland", "name": "JupyterHub"}
    answer = app.test_client().post(
        "/api/v1/tokens", json=body | {"purpose": "jupyterhub"}, base_url=PORTAL
    )
    assert (answer.json or {})["purpose"] == "jupyterhub"
    assert "For servers in JupyterHub; revoked at the log-out there" in alice.get("/account").text
