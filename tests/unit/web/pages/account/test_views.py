"""The account menu and its pages; logging out and in."""

from __future__ import annotations

import pytest
from flask import Flask

from portal.web.http.paths import next_query
from tests.unit.web.conftest import Browser


def test_the_menu_has_everything_about_the_account(alice: Browser) -> None:
    text = alice.get("/sessions").text
    menu = text[text.index('id="account-menu"') : text.index("</details>")]
    for link in ("/account", "/account/ssh", "/presets", "/account/notifications", "/help"):
        assert f'href="{link}"' in menu
        assert alice.get(link).status_code == 200
    assert 'action="/logout"' in menu


@pytest.mark.parametrize("path", ["/account/notifications", "/account/ssh"])
def test_its_pages_need_a_login(app: Flask, path: str) -> None:
    answer = Browser(app).get(path)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/login?{next_query(path)}")


@pytest.mark.parametrize("way", ["/logout", "/account/log-out-everywhere"])
def test_logging_out_is_confirmed_once(alice: Browser, way: str) -> None:
    csrf = alice.get("/account").text.split('name="csrf_token" value="')[1].split('"')[0]
    alice.client.post(way, data={"csrf_token": csrf}, base_url=alice.base)
    assert "You are logged out." in alice.get("/login").text
    assert "You are logged out." not in alice.get("/login").text


def test_notifications_are_explained_before_anything_is_pressed(alice: Browser) -> None:
    text = alice.get("/account/notifications").text
    assert "15 and in 5 minutes" in text
    assert "Notify me" not in alice.get("/sessions").text
