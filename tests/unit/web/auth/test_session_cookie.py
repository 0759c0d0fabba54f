"""Cookies of the portal's name that another port of its host has planted."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.unit.web.conftest import PORTAL, Browser


def cookie(browser: Browser) -> str:
    """The session cookie of a browser."""
    held = browser.client.get_cookie("slipway", domain="localhost")
    assert held is not None
    return held.value


def planted(app: Flask, kind: str) -> str:
    """A cookie that is no login."""
    if kind == "junk":
        return "junk"
    browser = Browser(app)
    browser.get("/login")
    if kind == "ended":
        browser.log_in("bob")
        ended = cookie(browser)
        browser.post("/logout")
        return ended
    return cookie(browser)


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("kind", ["junk", "stranger", "ended"])
def test_a_planted_cookie_logs_nobody_out(
    app: Flask, alice: Browser, kind: str, first: bool
) -> None:
    """P8: /sessions redirected to /login, which the cookie does not reach, and back, for ever."""
    form = {"csrf_token": alice.csrf()}
    values = [planted(app, kind), cookie(alice)]
    sent = "; ".join(f"slipway={value}" for value in (values if first else values[::-1]))
    strict = app.test_client(use_cookies=False)
    page = strict.get("/sessions", base_url=PORTAL, headers={"Cookie": sent})
    assert page.status_code == 200
    done = strict.post("/logout", data=form, base_url=PORTAL, headers={"Cookie": sent})
    assert (done.status_code, done.headers["Location"]) == (303, "/login")
    assert alice.get("/sessions").status_code == 303


def test_without_a_login_the_last_valid_cookie_counts(app: Flask) -> None:
    browser = Browser(app)
    token = browser.csrf()
    sent = f"slipway={planted(app, 'stranger')}; slipway={cookie(browser)}; slipway=junk"
    answer = app.test_client(use_cookies=False).post(
        "/login",
        data={"csrf_token": token, "username": "alice", "password": "wrong"},
        base_url=PORTAL,
        headers={"Cookie": sent},
    )
    assert answer.status_code == 401, "the form's token belongs to that cookie"


def test_of_two_logins_the_last_one_counts(alice: Browser, bob: Browser, app: Flask) -> None:
    sent = f"slipway={cookie(bob)}; slipway={cookie(alice)}"
    state = app.test_client(use_cookies=False).get(
        "/login/state", base_url=PORTAL, headers={"Cookie": sent}
    )
    assert state.get_json()["user"] == "alice"
