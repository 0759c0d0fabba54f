"""Every kind of request at an app's origin, by everybody without access: never any data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.support.fakes import World, make_world
from tests.unit.web.conftest import PORTAL, Api, Browser, Runner, make_settings

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PATHS = ("", "lab", "api/contents/", "login", "sessions", "api/v1/me", ".slipway/nothing", "a/../b")
DOCUMENT = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}
HEADERS: tuple[dict[str, str], ...] = (
    {},
    DOCUMENT,
    UPGRADE,
    DOCUMENT | {"Sec-Fetch-Dest": "iframe"},
)
OPEN_TO_ALL = {"static"}


@dataclass
class Place:
    """An app's origin and a browser with access."""

    origin: str
    inside: Browser

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie that opens the app."""
        jar = self.inside.client._cookies or {}
        (found,) = [c for c in jar.values() if "slipway_app" in c.key]
        return found.key, found.value


@pytest.fixture(params=["subdomains", "ports"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A portal in each of the two modes."""
    return make_world(make_settings(tmp_path, apps=request.param))


def _enter(app: Flask, browser: Browser, session: str, name: str) -> Place:
    answer = browser.post(f"/sessions/{session}/apps/{name}/open")
    parts = urlsplit(answer.headers["Location"])
    place = Place(f"{parts.scheme}://{parts.netloc}", Browser(app, answer.headers["Location"]))
    place.inside.base = place.origin
    entered = place.inside.get(f"{parts.path}?{parts.query}", headers=DOCUMENT)
    assert entered.status_code == 303, entered.text
    return place


@pytest.fixture
def runner(launched: Callable[..., Runner], alice: Browser, app: Flask) -> Runner:
    """Alice's running session."""
    found = launched("alice")
    found.ready()
    return found


@pytest.fixture
def hers(app: Flask, alice: Browser, runner: Runner) -> Place:
    """Her JupyterLab, where she works."""
    place = _enter(app, alice, runner.session.id, "jupyterlab")
    runner("apps/jupyterlab", {"state": "ready"})
    return place


def _requests(app: Flask) -> Iterator[tuple[str, str]]:
    """Every method and path of the gate, and many that only apps have."""
    gate: Flask = app.extensions["slipway_gate"]
    for rule in gate.url_map.iter_rules():
        if rule.endpoint in OPEN_TO_ALL:
            continue
        for path in PATHS if "<anything:path>" in rule.rule else ("",):
            for method in rule.methods or METHODS:
                yield method, rule.rule.replace("<anything:path>", path)


def _reveals_nothing(answer: TestResponse, origin: str) -> bool:
    """Whether a response is a refusal or a redirect to the portal, and sets none of our cookies."""
    if "slipway" in answer.headers.get("Set-Cookie", ""):
        return False
    if answer.status_code == 303:
        return answer.headers["Location"].startswith(f"{PORTAL}/open/")
    return answer.status_code in (401, 404, 405) or (
        # The router's response for every path: the allowed methods.
        answer.status_code == 200 and answer.request.method == "OPTIONS" and not answer.data
    )


def _send_everything(app: Flask, world: World, origin: str, *cookies: tuple[str, str]) -> None:
    routes, count = dict(world.routes.map), 0
    for method, path in _requests(app):
        for headers in HEADERS:
            stranger = Browser(app, origin)
            for name, value in cookies:
                stranger.client.set_cookie(name, value, domain=urlsplit(origin).hostname or "")
            answer = stranger.client.open(path, method=method, base_url=origin, headers=headers)
            assert _reveals_nothing(answer, origin), (method, path, headers, answer.status_code)
            count += 1
    assert count > 100
    assert world.routes.map == routes


def test_strangers(app: Flask, world: World, hers: Place) -> None:
    assert hers.inside.get("/.slipway/status").status_code == 200
    _send_everything(app, world, hers.origin)


def test_users_with_cookies_of_other_origins(
    app: Flask, world: World, hers: Place, bob: Browser, launched: Callable[..., Runner]
) -> None:
    theirs = launched("bob")
    theirs.ready()
    his = _enter(app, bob, theirs.session.id, "jupyterlab")
    login = bob.client.get_cookie("slipway", domain="localhost")
    assert login is not None
    # His own app's cookie, by its own name and by the name of hers; and his login cookie.
    value = his.cookie[1]
    _send_everything(app, world, hers.origin, ("slipway", login.value), his.cookie)
    _send_everything(app, world, hers.origin, (hers.cookie[0], value))
    _send_everything(app, world, hers.origin, (hers.cookie[0], login.value))


def test_her_own_cookie_is_valid_at_its_own_app_only(
    app: Flask, world: World, hers: Place, alice: Browser, runner: Runner
) -> None:
    terminal = _enter(app, alice, runner.session.id, "terminal")
    assert terminal.origin != hers.origin
    name, value = hers.cookie
    _send_everything(app, world, terminal.origin, (name, value), (terminal.cookie[0], value))


@pytest.mark.parametrize("how", ["closed", "ended", "logged out"])
def test_closed_apps_stay_closed(
    app: Flask,
    world: World,
    hers: Place,
    alice: Browser,
    api: Callable[[str], Api],
    runner: Runner,
    how: str,
) -> None:
    cookie, session = hers.cookie, runner.session.id
    before = hers.inside.get("/.slipway/status")
    assert before.json["step"] == "ready"  # type: ignore[index]
    assert world.routes.map
    if how == "closed":
        assert api("alice")("DELETE", f"/sessions/{session}/apps/jupyterlab").status_code < 300
    elif how == "ended":
        assert alice.post("/sessions/end", {"ids": session}).status_code < 400
    else:
        alice.post("/logout")
    assert world.routes.map == {}
    _send_everything(app, world, hers.origin, cookie)


def test_callbacks_are_for_the_sessions_own_runner(
    app: Flask, runner: Runner, launched: Callable[..., Runner], api: Callable[[str], Api]
) -> None:
    """Every callback route, with every token that is not this session's."""
    theirs = launched("bob")
    wrong = {"": "", "of nobody": "x" * 43, "of bob's session": theirs.token}
    wrong |= {"of her program": api("alice").token, "with a space": f"{runner.token} x"}
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/runner/")]
    assert rules
    for rule in rules:
        path = rule.rule.replace("<session_id>", runner.session.id).replace("<app>", "terminal")
        for method in METHODS:
            for which, token in wrong.items():
                headers: dict[str, Any] = {"Authorization": f"Bearer {token}"} if token else {}
                for frontend, base in (({}, PORTAL), ({"X-Slipway-Frontend": "runners"}, "")):
                    answer = app.test_client().open(
                        path,
                        method=method,
                        json={"state": "failed"},
                        base_url=base or "https://portal:8443",
                        headers=headers | frontend,
                    )
                    seen = (method, path, which, frontend, answer.status_code)
                    # Sessions that the portal has lost: Slurm decides about a valid body.
                    allowed = (401, 405) if not path.endswith("/adopt") else (401, 405, 422)
                    assert answer.status_code in (allowed if frontend else (404, 405)) or (
                        method == "OPTIONS" and not answer.data
                    ), seen
                    assert "certificate" not in answer.text, seen
