"""The field for the second factor: login page, dialog of expired logins, and tokens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from portal.web.app import create_app
from tests.support import fakes
from tests.support.fakes import PASSWORDS, World, make_world
from tests.unit.web.conftest import PORTAL, Browser, make_settings

TITLE = 'Code <of "your" phone>'
WRONG = "The name, the password or the code is wrong."


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setitem(fakes.CODES, "alice", "123456")
    settings = make_settings(tmp_path)
    login = settings.login.model_copy(update={"second_factor": TITLE})
    return make_world(settings.model_copy(update={"login": login}))


def test_the_login_page_asks_for_it_and_names_no_cause(world: World) -> None:
    browser = Browser(create_app(world.services))
    page = browser.get("/login").text
    assert 'for="code">Code &lt;of &#34;your&#34; phone&gt;</label>' in page
    assert re.search(r'name="code"[^>]*autocomplete="one-time-code"', page)
    sent = {"username": "alice", "password": PASSWORDS["alice"]}
    wrong = [
        sent,
        sent | {"code": "000000"},
        sent | {"code": "x" * 257},
        sent | {"code": "1\x00"},
        {"username": "alice", "password": "x", "code": "123456"},
    ]
    for fields in wrong:
        answer = browser.post("/login", fields)
        assert (answer.status_code, WRONG in answer.text) == (401, True)
        assert 'value="123456"' not in answer.text
    assert browser.post("/login", sent | {"code": " 123456 "}).status_code == 303
    assert 'id="relogin-code"' in browser.get("/sessions/new").text


def test_a_login_from_an_open_page(world: World) -> None:
    browser = Browser(create_app(world.services))
    sent = {"username": "alice", "password": PASSWORDS["alice"]}
    wrong = browser.post("/login/again", sent)
    assert (wrong.status_code, wrong.get_json()["problem"]) == (401, WRONG)
    right = browser.post("/login/again", sent | {"code": "123456"})
    assert right.get_json()["user"] == "alice"


def test_a_token(world: World) -> None:
    client = create_app(world.services).test_client()

    def make(**body: str) -> tuple[int, dict[str, object]]:
        answer = client.post("/api/v1/tokens", json=body, base_url=PORTAL)
        return answer.status_code, answer.json or {}

    sent = {"username": "alice", "password": PASSWORDS["alice"]}
    assert make(**sent)[0] == 401
    assert make(**sent, code="000000")[1]["detail"] == WRONG
    status, found = make(**sent, code="123456")
    assert status == 201
    assert make(username="alice", code="123456")[1]["errors"][0]["field"] == "password"  # type: ignore[index]
    headers = {"Authorization": f"Bearer {found['token']}"}
    answer = client.post("/api/v1/tokens", json={"code": "1"}, headers=headers, base_url=PORTAL)
    assert (answer.status_code, (answer.json or {})["errors"][0]["field"]) == (422, "code")


def test_codes_are_guessed_as_slowly_as_passwords(tmp_path: Path, world: World) -> None:
    settings = world.services.settings
    web = settings.web.model_copy(update={"logins_per_account": 5})
    limited = make_world(settings.model_copy(update={"web": web}))
    browser = Browser(create_app(limited.services))
    sent = {"username": "alice", "password": PASSWORDS["alice"]}
    found = [browser.post("/login", sent | {"code": f"{n:06}"}).status_code for n in range(7)]
    assert found == [401] * 5 + [429] * 2


def test_without_the_setting_there_is_no_field(tmp_path: Path) -> None:
    browser = Browser(create_app(make_world(make_settings(tmp_path)).services))
    assert 'name="code"' not in browser.get("/login").text
