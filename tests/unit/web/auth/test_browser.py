"""Logins that expire while a form is filled in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flask import Flask

from portal.config import LoginSettings
from portal.web.app import create_app
from tests.support.fakes import PASSWORDS, World, make_world
from tests.support.launch_pages import WIZARD_FORM, field_value
from tests.unit.web.conftest import Browser, make_settings


def test_an_expired_login_keeps_the_fields_of_our_own_page(app: Flask, alice: Browser) -> None:
    token = alice.csrf()
    login = alice.client.get_cookie("slipway", domain="localhost")
    assert login is not None
    Browser(app).log_in("alice").post("/account/log-out-everywhere")
    sent = WIZARD_FORM | {"csrf_token": token, "who": "alice", "name": "kept1"}
    page = alice.client.post("/sessions", data=sent, base_url=alice.base)
    assert page.status_code == 401
    kept = field_value(page.text, "kept")
    assert "kept1" in kept
    fields = {"username": "alice", "password": PASSWORDS["alice"], "kept": kept}
    again = alice.post("/login", fields).text
    assert field_value(again, "name") == "kept1"
    other = alice.post("/login", {"username": "bob", "password": PASSWORDS["bob"], "kept": kept})
    assert other.status_code == 303
    assert "kept1" not in other.text


def test_an_expired_login_keeps_a_long_script_of_the_composer(app: Flask, alice: Browser) -> None:
    token = alice.csrf()
    Browser(app).log_in("alice").post("/account/log-out-everywhere")
    script = "#!/bin/sh\n" + "echo 'é\"\\'\n" * 25_000
    sent = {"csrf_token": token, "who": "alice", "source": "editor", "script": script}
    page = alice.client.post(
        "/jobs/new",
        data=sent | {"args": "a b", "key": "k"},
        base_url=alice.base,
        content_type="multipart/form-data",
    )
    assert page.status_code == 401
    fields = {
        "username": "alice",
        "kept": field_value(page.text, "kept"),
        "kept_form": field_value(page.text, "kept_form"),
    }
    wrong = alice.client.post(
        "/login",
        data=fields | {"csrf_token": token, "password": "wrong"},
        base_url=alice.base,
        content_type="multipart/form-data",
    )
    assert (wrong.status_code, field_value(wrong.text, "kept")) == (401, fields["kept"])
    answer = alice.client.post(
        "/login",
        data=fields | {"csrf_token": token, "password": PASSWORDS["alice"]},
        base_url=alice.base,
        content_type="multipart/form-data",
    )
    assert 'action="/jobs/new/again"' in answer.text
    assert "Nothing was submitted yet." in answer.text
    assert field_value(answer.text, "script") == script
    assert (field_value(answer.text, "args"), field_value(answer.text, "key")) == ("a b", "k")


@pytest.mark.parametrize("kept", ["junk", "{}", "[1]", '[["a"]]', "[" * 50])
def test_invalid_kept_fields_are_ignored(app: Flask, kept: str) -> None:
    fields = {"username": "alice", "password": PASSWORDS["alice"], "kept": kept}
    assert Browser(app).post("/login", fields).status_code == 303


def test_a_stranger_gets_no_fields_back(app: Flask) -> None:
    answer = Browser(app).client.post(
        "/sessions", data=WIZARD_FORM, base_url="http://localhost:8080"
    )
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/login"


def test_a_login_from_an_open_page(app: Flask, alice: Browser) -> None:
    stranger = Browser(app)
    assert stranger.get("/login/state").get_json()["user"] == ""
    wrong = stranger.post("/login/again", {"username": "alice", "password": "x"})
    assert (wrong.status_code, wrong.get_json()["problem"]) == (
        401,
        "The name or the password is wrong.",
    )
    right = stranger.post("/login/again", {"username": "alice", "password": PASSWORDS["alice"]})
    token = right.get_json()["csrf_token"]
    sent = WIZARD_FORM | {"csrf_token": token, "confirmed": "yes"}
    made = stranger.client.post("/sessions", data=sent, base_url=stranger.base)
    assert made.status_code == 303
    assert stranger.get("/login/state").get_json()["user"] == "alice"


@pytest.mark.parametrize("name", ["John.Doe", "j.doe@example.org"])
def test_names_that_the_site_permits_log_in_and_are_shown(tmp_path: Path, name: str) -> None:
    settings = make_settings(tmp_path)
    login = LoginSettings(account_pattern="[A-Za-z][A-Za-z0-9._@-]{0,63}")
    world = make_world(settings.model_copy(update={"login": login}))
    world.services.authenticate = lambda user, password, code="": (
        name if user.lower() == name.lower() else ""
    )
    app = create_app(world.services)
    browser = Browser(app)
    assert browser.post("/login", {"username": name.upper(), "password": "x"}).status_code == 303
    assert f"<span>{name}</span>" in browser.get("/sessions").text
    world.services.authenticate = lambda user, password, code="": user
    administrator = Browser(create_app(world.services))
    administrator.post("/login", {"username": "admin", "password": "x"})
    people = administrator.get("/admin/people").text
    link = re.search(r'href="(/admin/people/[^"]+)"[^>]*>' + re.escape(name), people)
    assert link is not None
    assert f"All browsers and all tokens of {name}." in administrator.get(link[1]).text


def test_names_that_the_site_does_not_permit_are_not_asked_for(app: Flask, world: World) -> None:
    asked: list[str] = []

    def ask(user: str, password: str, code: str = "") -> str:
        asked.append(user)
        return user

    world.services.authenticate = ask
    browser = Browser(create_app(world.services))
    for name in ("John.Doe", "a/b", "root", "-x", "1000"):
        answer = browser.post("/login", {"username": name, "password": "x"})
        assert answer.status_code == 401
    assert asked == []
