"""Requests below /data/ that HAProxy cannot lead to a file server yet."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask

from portal.core.auth.person import hash_secret
from portal.core.files.server import route_key
from portal.errors import Starting, Unavailable
from tests.support.fakes import World
from tests.unit.web.conftest import PORTAL, Api, Browser

PATH = "/data/files/home/caf%E9%0A.txt"
NAVIGATION = {"Sec-Fetch-Mode": "navigate"}


def test_a_browser_is_admitted_and_sent_back(world: World, alice: Browser) -> None:
    answer = alice.get(PATH, environ_overrides={"RAW_URI": PATH})
    assert answer.status_code == 307
    assert answer.headers["Location"] == PATH
    cookie = alice.client.get_cookie("slipway-files")
    assert cookie is not None
    assert (cookie.http_only, cookie.same_site, cookie.path) == (True, "Strict", "/")
    route = world.routes.map[route_key(hash_secret(cookie.value))]
    assert route.rpartition("@")[2].startswith("files.")
    alice.get(PATH)
    again = alice.client.get_cookie("slipway-files")
    assert again is not None
    assert again.value == cookie.value, "a known browser keeps its cookie"


def test_requests_without_the_cookie_add_no_routes(world: World, alice: Browser) -> None:
    """One login made 1,500 of them in 80 seconds."""
    for _ in range(20):
        alice.client.delete_cookie("slipway-files")
        assert alice.get(PATH).status_code == 307
    assert len(world.routes.map) == 1
    assert len(world.services.file_servers.expected_routes()) == 1


def test_a_cookie_of_an_earlier_user_of_the_browser_is_replaced(app: Flask) -> None:
    browser = Browser(app).log_in("alice")
    browser.get(PATH)
    first = browser.client.get_cookie("slipway-files")
    browser.log_in("bob")
    browser.get(PATH)
    second = browser.client.get_cookie("slipway-files")
    assert first is not None
    assert second is not None
    assert first.value != second.value


def test_strangers_log_in_first(app: Flask) -> None:
    stranger = Browser(app)
    answer = stranger.get(PATH, headers=NAVIGATION)
    assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (303, "/login")
    answer = stranger.get(PATH)
    assert (answer.status_code, answer.mimetype) == (401, "application/problem+json")
    answer = stranger.client.put(PATH, data=b"x", base_url=PORTAL)
    assert answer.status_code == 401


def test_another_site_cannot_write(alice: Browser) -> None:
    headers = {"Origin": "https://evil.example.org"}
    answer = alice.client.put(PATH, data=b"x", base_url=PORTAL, headers=headers)
    assert answer.status_code == 403


def make_token(api: Api, *scopes: str) -> str:
    answer = api("POST", "/tokens", json={"name": "t", "scopes": list(scopes), "days": 1})
    assert answer.json is not None, answer.text
    return str(answer.json["token"])


def test_a_token_needs_the_scope_for_files(
    app: Flask, world: World, api: Callable[[str], Api]
) -> None:
    client = app.test_client()

    def ask(method: str, token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return client.open(PATH, method=method, headers=headers, base_url=PORTAL).status_code

    assert ask("GET", make_token(api("alice"), "read", "write")) == 403
    reader = make_token(api("alice"), "files:read")
    assert (ask("PUT", reader), ask("GET", reader)) == (403, 200)
    assert world.routes.map[route_key(hash_secret(reader))].rpartition("@")[2].startswith("read.")
    writer = make_token(api("alice"), "files:write")
    assert ask("PUT", writer) == 200
    assert world.routes.map[route_key(hash_secret(writer))].rpartition("@")[2].startswith("files.")
    assert ask("GET", "slipway_wrong") == 401


def test_a_server_that_does_not_answer_is_started_again(
    app: Flask, world: World, alice: Browser
) -> None:
    """HAProxy holds the request, and asks with the hash of the cookie."""
    alice.get(PATH)
    cookie = alice.client.get_cookie("slipway-files")
    assert cookie is not None
    world.file_servers.kill("alice")
    client, known = app.test_client(), {"X-Slipway-Files": hash_secret(cookie.value)}
    answer = client.patch(PATH, base_url=PORTAL, headers=known)
    assert (answer.status_code, answer.headers["X-Slipway-Files"]) == (200, "started")
    assert world.file_servers.starts == ["alice", "alice"]
    unknown = {"X-Slipway-Files": "0" * 64}
    assert client.get(PATH, base_url=PORTAL, headers=unknown).status_code == 404


def test_haproxy_asks_again_while_a_server_is_starting(
    app: Flask, world: World, api: Callable[[str], Api]
) -> None:
    token = make_token(api("alice"), "files:write")
    headers = {"Authorization": f"Bearer {token}"}
    world.file_servers.refusal = Starting("Your file server is being started.")
    answer = app.test_client().put(PATH, headers=headers, base_url=PORTAL)
    assert (answer.status_code, answer.headers["X-Slipway-Files"]) == (503, "starting")
    assert int(answer.headers["Retry-After"]) > 0
    world.file_servers.refusal = Unavailable("Your shell does not start.")
    answer = app.test_client().put(PATH, headers=headers, base_url=PORTAL)
    assert answer.status_code == 503
    assert "X-Slipway-Files" not in answer.headers


def test_a_token_may_be_the_password_of_a_program(app: Flask, api: Callable[[str], Api]) -> None:
    token = make_token(api("alice"), "files:write")
    client = app.test_client()

    def status(password: str, url: str = "https://localhost:8080", **headers: str) -> int:
        environ = {"REMOTE_ADDR": "192.0.2.7"}
        return client.put(
            PATH, base_url=url, headers=headers, auth=("alice", password), environ_base=environ
        ).status_code

    assert status(token) == 200
    assert status("slipway_wrong") == 401
    assert status("secret of alice") == 401, "never the account's password"
    assert status(token, "http://localhost:8080") == 403, "it would be readable on the way"
    for header in ("Origin", "Sec-Fetch-Site"):
        assert status(token, **{header: "https://localhost:8080"}) == 403


def test_programs_are_told_that_they_may_send_a_password(app: Flask) -> None:
    client = app.test_client()
    answer = client.open(PATH, method="PROPFIND", base_url="https://localhost:8080")
    assert answer.status_code == 401
    assert answer.headers.getlist("WWW-Authenticate") == [
        'Basic realm="Slipway", charset="UTF-8"',
        "Bearer",
    ]
    headers = {"Sec-Fetch-Site": "same-origin"}
    answer = client.get(PATH, base_url="https://localhost:8080", headers=headers)
    assert answer.headers.getlist("WWW-Authenticate") == ["Bearer"], "browsers would ask for it"
