"""What the portal tells HAProxy about the sender of a request."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask

from portal.web.caller import HEADER, number_of
from tests.support.fakes import PASSWORDS
from tests.unit.web.app_pages import ADDRESS, opened
from tests.unit.web.conftest import PORTAL, Api, Browser, Runner

ALICE = str(number_of("person alice"))


def test_people_have_numbers_that_haproxy_can_store() -> None:
    numbers = {number_of(f"person user{number}") for number in range(1000)}
    assert len(numbers) == 1000
    assert all(0 < number < 1 << 31 for number in numbers)


def test_a_log_in_names_the_owner_of_its_new_cookie(app: Flask) -> None:
    browser = Browser(app)
    assert browser.get("/login").headers[HEADER] == "0"
    assert browser.get("/sessions").headers[HEADER] == "0"
    wrong = browser.post("/login", {"username": "alice", "password": "wrong"})
    assert (wrong.status_code, wrong.headers[HEADER]) == (401, "0")
    right = browser.post("/login", {"username": "alice", "password": PASSWORDS["alice"]})
    assert (right.headers[HEADER], "Set-Cookie" in right.headers) == (ALICE, True)
    assert browser.get("/sessions").headers[HEADER] == ALICE


def test_polls_that_show_nothing_new_say_it_too(alice: Browser) -> None:
    """A HAProxy that was reloaded would take whoever has pages open for a stranger."""
    path, mark = "/sessions/rows", ""
    for status in (200, 204):
        answer = alice.get(path, headers={"If-None-Match": mark})
        assert (answer.status_code, answer.headers[HEADER]) == (status, ALICE)
        mark = answer.headers.get("ETag", "")
    assert not mark, "it was not rendered again"


def test_a_poll_with_a_token_beside_its_cookie_says_nothing_of_the_token(alice: Browser) -> None:
    mark = alice.get("/sessions/rows").headers["ETag"]
    beside = {"Authorization": "Bearer made-up"}
    for _ in range(2):
        answer = alice.get("/sessions/rows", headers={"If-None-Match": mark} | beside)
        assert (answer.status_code, HEADER in answer.headers) == (204, False)
        mark = answer.headers.get("ETag", mark)


def test_a_log_out_ends_it_also_for_the_cookie_that_it_sets(alice: Browser) -> None:
    assert alice.post("/logout").headers[HEADER] == "0"
    assert alice.get("/login").headers[HEADER] == "0"


def test_tokens(app: Flask, api: Callable[[str], Api]) -> None:
    alice = api("alice")
    assert alice("GET", "/sessions").headers[HEADER] == ALICE
    alice.token = "slipway_made-up"
    assert alice("GET", "/sessions").headers[HEADER] == "0"


def test_one_spelling_of_a_cookie_and_of_a_token_is_stored(
    app: Flask, alice: Browser, api: Callable[[str], Api]
) -> None:
    """With each of any number that were, somebody's would be dropped from HAProxy's table."""
    cookie = alice.client.get_cookie("slipway", "localhost")
    assert cookie is not None
    for value, number in ((cookie.value, ALICE), (f'"{cookie.value}"', None)):
        client = app.test_client(use_cookies=False)
        answer = client.get("/sessions", headers={"Cookie": f"slipway={value}"}, base_url=PORTAL)
        assert (answer.status_code, answer.headers.get(HEADER)) == (200, number)
    token = api("alice").token
    for spelled, number in ((f"Bearer {token}", ALICE), (f"Bearer  {token}", "0")):
        headers = {"Authorization": spelled}
        answer = app.test_client().get("/api/v1/sessions", headers=headers, base_url=PORTAL)
        assert answer.headers[HEADER] == number


def test_a_password_for_a_token_says_nothing_of_cookies(app: Flask) -> None:
    body = {"username": "alice", "password": PASSWORDS["alice"]}
    answer = app.test_client().post("/api/v1/tokens", json=body, base_url=PORTAL)
    assert (answer.status_code, HEADER in answer.headers) == (201, False)


def test_a_page_with_a_token_beside_its_cookie_says_nothing_of_the_token(alice: Browser) -> None:
    """HAProxy counts by the token then, which nobody has checked."""
    answer = alice.get("/sessions", headers={"Authorization": "Bearer made-up"})
    assert (answer.status_code, HEADER in answer.headers) == (200, False)


def test_runners_count_by_their_owner_apart_from_the_owners_pages(
    launched: Callable[..., Runner],
) -> None:
    runner = launched()
    answer = runner.ready()
    assert answer.headers[HEADER] == str(number_of("runners of alice")) != ALICE


def test_an_apps_cookie_is_its_owners(
    app: Flask, alice: Browser, launched: Callable[..., Runner]
) -> None:
    runner = launched()
    runner.ready()
    inside = opened(app, alice, runner)
    assert inside.get(ADDRESS).headers[HEADER] == ALICE
    cookies = (inside.client._cookies or {}).values()
    [grant] = [cookie for cookie in cookies if cookie.key.startswith("slipway_app_")]
    quoted = f'{grant.key}="{grant.value}"'
    other = app.test_client(use_cookies=False)
    answer = other.get(ADDRESS, headers={"Cookie": quoted}, base_url=inside.base)
    assert (answer.status_code, HEADER in answer.headers) == (200, False)
    assert Browser(app, inside.base).get("/").headers[HEADER] == "0"
