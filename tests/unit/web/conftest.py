"""A portal's web application over the fakes of tests/support/fakes.py, and its clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal.config import GpuKindSettings, GpuSettings, Settings
from portal.core.session.session import Session
from portal.web.app import create_app
from tests.support.fakes import PASSWORDS, World, make_world
from tests.support.paths import TEMPLATES

PORTAL = "http://localhost:8080"
LAUNCH: dict[str, Any] = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}


def make_settings(directory: Path, **web: object) -> Settings:
    """Settings of a small site; web settings can be overridden."""
    (directory / "secret_key").write_text("0" * 64)
    return Settings.model_validate(
        {
            "web": {"public_url": PORTAL} | web,
            "state": {"directory": str(directory), "run": str(directory)},
            "slurm": {"admins": ["admin"]},
            "sessions": {"templates": str(TEMPLATES)},
        }
    )


def with_gpus(settings: Settings) -> Settings:
    """The same site with a kind of GPU of 8 GB, which is 2 fGPU."""
    kind = GpuKindSettings.model_validate(
        {"name": "demo", "title": "Demo GPU", "memory": "8g", "unit": 0.5, "step": 0.5}
    )
    return settings.model_copy(update={"gpu": GpuSettings(kinds=(kind,))})


@dataclass
class Api:
    """An API client with a token."""

    client: FlaskClient
    token: str

    def __call__(self, method: str, path: str, **options: Any) -> TestResponse:
        """Send an API request."""
        headers = {"Authorization": f"Bearer {self.token}"} | options.pop("headers", {})
        address = f"/api/v1{path}"
        return self.client.open(address, method=method, base_url=PORTAL, headers=headers, **options)


class Browser:
    """A user's browser at the portal's pages."""

    def __init__(self, app: Flask, base: str = PORTAL) -> None:
        self.client = app.test_client()
        self.base = base
        self.tokens: dict[str, str] = {}

    def get(self, path: str, **options: Any) -> TestResponse:
        """Load a page."""
        options.setdefault("base_url", self.base)
        return self.client.get(path, **options)

    def post(self, path: str, data: dict[str, Any] | None = None, **options: Any) -> TestResponse:
        """Submit a form with the page's CSRF token."""
        fields = {"csrf_token": self.csrf()} | (data or {})
        options.setdefault("base_url", self.base)
        return self.client.post(path, data=fields, **options)

    def csrf(self) -> str:
        """The CSRF token of a page that everybody can load, read once for a session cookie."""
        token = self.tokens.get(self._session_cookie())
        if token is None:
            text = self.get("/login", follow_redirects=True).text
            field = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', text)
            assert field is not None
            token = self.tokens[self._session_cookie()] = field[1]
        return token

    def _session_cookie(self) -> str:
        host = urlsplit(self.base).hostname or ""
        cookies = (self.client.get_cookie(name, host) for name in ("__Host-slipway", "slipway"))
        return next((cookie.value for cookie in cookies if cookie), "")

    def log_in(self, name: str) -> Browser:
        """Log in as a demo account."""
        answer = self.post("/login", {"username": name, "password": PASSWORDS[name]})
        assert answer.status_code == 303, answer.text
        return self


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal with the real templates."""
    return make_world(make_settings(tmp_path))


@pytest.fixture
def app(world: World) -> Flask:
    """The web application."""
    return make_app(world)


def make_app(world: World) -> Flask:
    """A portal's web application."""
    application = create_app(world.services)
    application.testing = True
    return application


@pytest.fixture
def api(app: Flask) -> Callable[[str], Api]:
    """API clients by user name."""
    return api_clients(app)


def api_clients(app: Flask) -> Callable[[str], Api]:
    """API clients by user name; each logs in once, since a fuzzer sends hundreds of requests."""

    @cache
    def log_in(name: str) -> Api:
        client = app.test_client()
        body = {"username": name, "password": PASSWORDS[name]}
        answer = client.post("/api/v1/tokens", json=body, base_url=PORTAL)
        assert answer.status_code == 201
        return Api(client, answer.json["token"] if answer.json else "")

    return log_in


@pytest.fixture
def alice(app: Flask) -> Browser:
    """Alice's browser."""
    return Browser(app).log_in("alice")


@pytest.fixture
def bob(app: Flask) -> Browser:
    """Bob's browser."""
    return Browser(app).log_in("bob")


@dataclass
class Runner:
    """A session's runner as seen by the callbacks."""

    client: FlaskClient
    world: World
    session: Session

    def __call__(self, path: str, body: object, **headers: str) -> TestResponse:
        """Send a report."""
        return self.client.post(
            f"/runner/v1/sessions/{self.session.id}/{path}",
            json=body,
            base_url="https://portal:8443",
            headers={
                "Authorization": f"Bearer {self.token}",
                "X-Slipway-Frontend": "runners",
                **headers,
            },
        )

    @property
    def token(self) -> str:
        """The secret passed to the job."""
        spec = self.job.spec
        found = re.search(r'"token": "([^"]+)"', spec)
        assert found is not None
        return found[1]

    @property
    def job(self) -> Any:
        """The session's job."""
        return next(job for job in self.world.slurm.jobs if job.name == self.session.id)

    def ready(self) -> TestResponse:
        """Start the job and let its gateway call back."""
        self.world.slurm.start(self.job)
        body = {"job_id": str(self.job.id), "node": "n1", "port": 40123, "csr": "PEM"}
        return self("ready", body)


@pytest.fixture
def launched(app: Flask, world: World, api: Callable[[str], Api]) -> Callable[..., Runner]:
    """Launches a session and returns its runner."""
    return launcher(app, world, api)


def launcher(app: Flask, world: World, api: Callable[[str], Api]) -> Callable[..., Runner]:
    """A function that launches a session and returns its runner."""

    def make(owner: str = "alice", **changes: Any) -> Runner:
        answer = api(owner)("POST", "/sessions", json=LAUNCH | changes)
        assert answer.status_code == 201, answer.text
        identifier = answer.json["sessions"][0]["id"] if answer.json else ""
        session = world.store.get(identifier)
        assert session is not None
        return Runner(app.test_client(), world, session)

    return make
