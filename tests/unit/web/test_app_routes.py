"""Every route of the router: a new one is covered from the first day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask

from portal import create_app
from tests.fakes import make_world
from tests.unit.web.conftest import PORTAL, Api, Browser, Runner, make_settings

OPEN_TO_ALL = {"static", "auth.login_form", "auth.login", "pages.healthz"} | {
    "api_tokens.make_token",
    "api_openapi.openapi",
}


def _routes(app: Flask) -> Iterator[tuple[str, str, str]]:
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            yield rule.endpoint, method, rule.rule


def _fill(rule: str, session: str) -> str:
    path = rule.replace("<session_id>", session).replace("<app>", "terminal")
    path = path.replace("<environment>", "python").replace("<version>", "3.13")
    path = path.replace("<name>", "small").replace("<label>", "label")
    return path.replace("<path:filename>", "base.css")


def test_strangers_get_no_access(app: Flask, launched: Callable[..., Runner]) -> None:
    session = launched("alice").session.id
    for endpoint, method, rule in _routes(app):
        if endpoint in OPEN_TO_ALL:
            continue
        stranger = Browser(app)
        fields = {"csrf_token": stranger.csrf()} if method == "POST" else None
        answer = stranger.client.open(
            _fill(rule, session), method=method, base_url=PORTAL, data=fields
        )
        if rule.startswith("/api/"):
            assert answer.status_code == 401, (method, rule)
            assert answer.content_type == "application/problem+json"
        elif rule.startswith("/runner/"):
            assert answer.status_code == 404, (method, rule)
        else:
            assert answer.status_code == 303, (method, rule)
            assert answer.headers["Location"].startswith("/login"), (method, rule)


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


@pytest.mark.parametrize("path", ["/login", "/api/v1/tokens"])
def test_password_attempts_are_limited(tmp_path: Path, path: str) -> None:
    app = create_app(make_world(make_settings(tmp_path, logins_per_minute=3)).services)
    browser = Browser(app)
    token = browser.csrf()
    body = {"username": "alice", "password": "guess"}
    codes = []
    for _ in range(4):
        if path == "/login":
            answer = browser.post(path, body | {"csrf_token": token})
        else:
            answer = browser.client.post(path, json=body, base_url=PORTAL)
        codes.append(answer.status_code)
    assert codes == [401, 401, 401, 429]
    assert answer.headers["Retry-After"]


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
