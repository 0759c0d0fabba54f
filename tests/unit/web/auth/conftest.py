"""Portals whose users log in at an OpenID provider, which can be made to lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from portal.config import Settings
from portal.web.app import create_app
from tests.support.clock import FakeClock
from tests.support.fakes import World, make_world
from tests.support.openid_provider import CLIENT, SECRET, OpenIdServer
from tests.unit.web.conftest import PORTAL, Browser, make_settings


@pytest.fixture
def provider() -> Iterator[OpenIdServer]:
    """The provider; its clock is set to the portal's."""
    with OpenIdServer(FakeClock()) as server:
        yield server


class Site:
    """A portal with this provider, and its browsers."""

    def __init__(self, folder: Path, provider: OpenIdServer, **oidc: Any) -> None:
        secret = folder / "client_secret"
        secret.write_text(SECRET + "\n")
        settings = make_settings(folder).model_dump(exclude_unset=True)
        settings["oidc"] = {
            "issuer": provider.issuer,
            "client_id": CLIENT,
            "client_secret_file": str(secret),
        } | oidc
        self.provider = provider
        self.world: World = make_world(Settings.model_validate(settings))
        provider.clock = self.world.clock
        self.app: Flask = create_app(self.world.services)
        self.app.testing = True

    def browser(self) -> Browser:
        """A new browser."""
        return Browser(self.app)

    def begin(self, browser: Browser, target: str = "") -> str:
        """Where the browser is sent to log in."""
        path = "/login/oidc" + (f"?{urlencode({'next': target})}" if target else "")
        answer = browser.get(path)
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"]

    def back(self, browser: Browser, url: str) -> TestResponse:
        """Follow the provider's redirect, as a navigation from its site."""
        assert url.startswith(f"{PORTAL}/login/oidc/callback?"), url
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
        return browser.get(url.removeprefix(PORTAL), headers=headers)

    def log_in(self, browser: Browser | None = None, target: str = "", **claims: Any) -> Any:
        """Log in from start to end; the portal's last answer."""
        browser = browser or self.browser()
        claims = {"preferred_username": "alice"} | claims
        return self.back(browser, self.provider.authorize(self.begin(browser, target), **claims))


Sites = Callable[..., Site]


@pytest.fixture
def site_of(tmp_path: Path, provider: OpenIdServer) -> Sites:
    """Portals with this provider and these settings."""

    def make(**oidc: Any) -> Site:
        return Site(tmp_path, provider, **oidc)

    return make


@pytest.fixture
def site(site_of: Sites) -> Site:
    """A portal with the defaults."""
    return site_of()
