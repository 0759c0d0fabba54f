"""Every route of the router: a new one is covered from the first day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask

from portal.web.app import create_app
from portal.web.auth.browser import PRESERVED_FORMS
from tests.support.fakes import make_world
from tests.unit.web.conftest import PORTAL, Api, Browser, Runner, make_settings

OPEN_TO_ALL = {"static", "auth.login_form", "auth.login", "pages.healthz"} | {
    "monitoring.livez",
    "monitoring.readyz",
    "api_tokens.make_token",
    "api_openapi.get_openapi",
    "pages.help_page",  # what these two reveal is tested below
    "auth.login_state",
    "auth.login_again",  # another login form; its attempts are limited, see below
    "auth.login_kept",  # to its sender alone; this and these: auth/test_provider.py
    "provider.start",
    "provider.callback",
    "provider.logged_out",
    "provider.back_channel",
    "branding.site_logo",  # the site's own pictures and colours: test_branding.py
    "branding.site_logo_dark",
    "branding.site_style",
}

MOMENT = "2026-11-20T12:00:00Z"


def _routes(app: Flask) -> Iterator[tuple[str, str, str]]:
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            yield rule.endpoint, method, rule.rule


def _fill(rule: str, session: str) -> str:
    path = rule.replace("<session_id>", session).replace("<app>", "terminal")
    path = path.replace("<environment>", "python").replace("<version>", "3.13")
    path = path.replace("<name>", "small").replace("<label>", "label")
    path = path.replace("<any(end, memory):notice>", "end").replace("<until>", MOMENT)
    path = re.sub(r"<any\((\w+),[\w,]+\):\w+>", r"\1", path)
    path = path.replace("<path:filename>", "base.css").replace("<location:", "<")
    return re.sub(r"<[a-z_]+>", "0" * 16, path)


def test_strangers_get_no_access(app: Flask, launched: Callable[..., Runner]) -> None:
    session = launched("alice").session.id
    for endpoint, method, rule in _routes(app):
        if endpoint in OPEN_TO_ALL:
            continue
        assert "<" not in _fill(rule, session), rule
        stranger = Browser(app)
        fields = {"csrf_token": stranger.csrf()} if method == "POST" else None
        answer = stranger.client.open(
            _fill(rule, session), method=method, base_url=PORTAL, data=fields
        )
        if rule.startswith(("/api/", "/data/")):
            assert answer.status_code == 401, (method, rule)
            assert answer.content_type == "application/problem+json"
        elif rule.startswith(
            ("/runner/", "/ssh/<signed>/", "/metrics")
        ):  # for programs with a secret
            assert answer.status_code == 404, (method, rule)
            assert "alice" not in answer.text, (method, rule)
        elif endpoint in PRESERVED_FORMS:  # the login form, with the sender's own fields
            assert answer.status_code == 401, (method, rule)
            assert 'name="password"' in answer.text, (method, rule)
            assert "alice" not in answer.text, (method, rule)
        else:
            assert answer.status_code == 303, (method, rule)
            assert answer.headers["Location"].startswith("/login"), (method, rule)


def test_strangers_learn_only_that_they_are_not_logged_in(
    app: Flask, alice: Browser, launched: Callable[..., Runner]
) -> None:
    launched("alice", name="secretproject")
    help_page = Browser(app).get("/help")
    assert help_page.status_code == 200
    assert not [word for word in ("alice", "secretproject") if word in help_page.text]
    answer = Browser(app).get("/login/state")
    assert answer.headers["Cache-Control"] == "no-store"
    assert not [name for name in answer.headers if name[0].startswith("Access-Control")]
    found = answer.get_json()
    assert found.pop("csrf_token")
    assert found == {"user": ""}
    assert alice.get("/login/state").get_json()["user"] == "alice"
    refused = Browser(app).post("/login/again", {"username": "alice", "password": "guess"})
    assert (refused.status_code, set(refused.get_json())) == (401, {"problem"})
    assert Browser(app).client.post("/login/again", base_url=PORTAL).status_code == 400  # no token


def test_sessions_of_others_are_not_found(
    app: Flask, bob: Browser, api: Callable[[str], Api], launched: Callable[..., Runner]
) -> None:
    session = launched("alice").session.id
    program = api("bob")
    for endpoint, method, rule in _routes(app):
        if "<session_id>" not in rule or endpoint.startswith("runner."):
            continue
        for which in (session, "0" * 32):
            path = _fill(rule, which)
            if rule.startswith("/api/"):
                answer = program(method, path.removeprefix("/api/v1"))
            else:
                answer = bob.post(path) if method == "POST" else bob.get(path)
            assert answer.status_code == 404, (method, path)


def test_administrators_routes_are_not_found_for_others(
    app: Flask, bob: Browser, api: Callable[[str], Api]
) -> None:
    program, found = api("bob"), 0
    for endpoint, method, rule in _routes(app):
        if not endpoint.startswith(("admin.", "api_admin.")):
            continue
        found += 1
        path = _fill(rule, "")
        if rule.startswith("/api/"):
            answer = program(method, path.removeprefix("/api/v1"), json={"wrong": 1})
        else:
            answer = bob.post(path) if method == "POST" else bob.get(path)
        assert answer.status_code == 404, (method, path)
        assert "There is nothing here, or it is not yours." in answer.text
    assert found > 20


def test_wrong_methods_are_refused(app: Flask) -> None:
    answer = app.test_client().delete("/api/v1/sessions", base_url=PORTAL)
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]


@pytest.mark.parametrize("path", ["/login", "/login/again", "/api/v1/tokens"])
def test_password_attempts_are_limited(tmp_path: Path, path: str) -> None:
    app = create_app(make_world(make_settings(tmp_path, logins_per_account=3)).services)
    browser = Browser(app)
    token = browser.csrf()
    body = {"username": "alice", "password": "guess"}
    codes = []
    for _ in range(4):
        if path.startswith("/login"):
            answer = browser.post(path, body | {"csrf_token": token})
        else:
            answer = browser.client.post(path, json=body, base_url=PORTAL)
        codes.append(answer.status_code)
    assert codes == [401, 401, 401, 429]
    assert answer.headers["Retry-After"] == "1200"
    assert "of this account have failed. Wait 20 minutes, then try again." in answer.text


def test_with_https_the_cookies_are_bound_to_the_host(tmp_path: Path) -> None:
    settings = make_settings(
        tmp_path, public_url="https://slipway.example.org", apps_domain="apps.example.org"
    )
    app = create_app(make_world(settings).services)
    browser = Browser(app, "https://slipway.example.org")
    answer = browser.post(
        "/login",
        {"username": "alice", "password": "wonderland"},
        headers={"Referer": "https://slipway.example.org/login"},
    )
    assert answer.status_code == 303
    assert "__Host-slipway=" in answer.headers["Set-Cookie"]
    assert "Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("url", "pinned"),
    [
        ("https://slipway.example.org", True),
        ("https://localhost:8080", False),  # it would apply to everything else on that host
        ("http://slipway.example.org", False),
    ],
)
def test_browsers_are_told_to_use_https_only(tmp_path: Path, url: str, pinned: bool) -> None:
    settings = make_settings(
        tmp_path, public_url=url, apps_host="apps.example.org", plain_http=True
    )
    answer = create_app(make_world(settings).services).test_client().get("/login", base_url=url)
    assert answer.status_code == 200
    assert ("Strict-Transport-Security" in answer.headers) is pinned
