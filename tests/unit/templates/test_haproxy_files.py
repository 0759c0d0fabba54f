"""The way from browsers and programs to a user's file server, through a real HAProxy."""

from __future__ import annotations

import http.client
import json
import shutil
from base64 import b64encode
from collections.abc import Iterator

import pytest

from portal.core.auth.person import hash_secret
from portal.core.files.server import route_key
from tests.unit.web.front import (
    SESSION,
    Answer,
    Front,
    NextAnswer,
    PortalServer,
    free_ports,
    running_front,
)

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

SECRET = "a-cookie-for-files"
JAR = f"slipway-files={SECRET}"
KEY = route_key(hash_secret(SECRET))
TOKEN = "slipway_token"
TOKEN_KEY = route_key(hash_secret(TOKEN))
PATH = "/data/files/home/caf%E9%0A.html?download"
NAME = f"files.{SESSION}.slipway"


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode."""
    with running_front(tmp_path_factory.mktemp("front"), request.param) as running:
        yield running


@pytest.fixture
def route(front: Front) -> Iterator[str]:
    """The route of alice's browser; returns the Host of the portal."""
    front.routes.add(KEY, f"127.0.0.1@{front.gateway.server_port}@{NAME}")
    yield f"localhost:{front.port}"
    front.routes.remove(KEY)


def ask(front: Front, host: str, method: str = "GET", **headers: str) -> Answer:
    return front.ask(host, PATH, method, **headers)


def test_a_cookie_leads_to_the_file_server_without_any_secret(front: Front, route: str) -> None:
    front.gateway.names.clear()
    jar = f"slipway=login; {JAR}; own=1"
    answer = ask(front, route, cookie=jar, X_Slipway_Files="planted", X_Forwarded_User="root")
    assert (answer.status, answer.seen["who"]) == (200, "app")
    assert answer.seen["path"] == PATH, "the path is passed on byte by byte"
    assert answer.sent("cookie") == answer.sent("authorization") == []
    assert answer.sent("x-forwarded-user") == []
    assert answer.sent("x-slipway-files") == [hash_secret(SECRET)]
    assert front.gateway.names in ([NAME], [])


def test_whatever_a_file_server_sends_runs_nowhere(front: Front, route: str) -> None:
    sent = {
        "Content-Type": "text/html",
        "Content-Security-Policy": "script-src *",
        "X-Frame-Options": "ALLOWALL",
        "Access-Control-Allow-Origin": "*",
        "Clear-Site-Data": '"*"',
        "Refresh": "0; url=https://evil.example.org",
        "Link": "<https://evil.example.org>; rel=preload",
        "Service-Worker-Allowed": "/",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "X-Content-Type-Options": "none",
    }
    headers = ask(front, route, cookie=JAR, X_Answer=json.dumps(sent)).headers
    policy = headers.get_all("Content-Security-Policy") or []
    assert len(policy) == 1
    assert policy[0].startswith("sandbox; default-src 'none';")
    assert headers.get_all("X-Frame-Options") == ["DENY"]
    assert headers.get_all("X-Content-Type-Options") == ["nosniff"]
    assert headers.get_all("Cross-Origin-Resource-Policy") == ["same-origin"]
    gone = ("Access-Control-Allow-Origin", "Clear-Site-Data", "Refresh", "Link", "Set-Cookie")
    assert [name for name in (*gone, "Service-Worker-Allowed") if name in headers] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "serviceworker"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "frame"},
        {"Service-Worker": "script"},
    ],
    ids=str,
)
def test_other_sites_and_scripts_get_no_files(
    front: Front, route: str, headers: dict[str, str]
) -> None:
    pairs = [("Cookie", JAR), *headers.items()]
    assert front.raw(route, PATH, "GET", "", pairs).status == 403


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "MOVE", "MKCOL", "PROPFIND"])
@pytest.mark.parametrize("origin", ["", "http://evil.example.org", "http://localhost"])
def test_a_cookie_changes_nothing_from_another_origin(
    front: Front, route: str, method: str, origin: str
) -> None:
    headers = {"cookie": JAR} | ({"origin": origin} if origin else {})
    assert ask(front, route, method, **headers).status == 403


def test_the_portals_own_pages_may_change_files(front: Front, route: str) -> None:
    assert ask(front, route, "POST", cookie=JAR, origin=f"http://{route}").seen["who"] == "app"


def test_a_token_needs_no_origin(front: Front, route: str) -> None:
    key = route_key(hash_secret(TOKEN))
    front.routes.add(key, f"127.0.0.1@{front.gateway.server_port}@read.{SESSION}.slipway")
    answer = ask(front, route, "POST", authorization=f"Bearer {TOKEN}")
    assert answer.seen["who"] == "app"
    assert answer.sent("authorization") == []
    front.routes.remove(key)
    assert ask(front, route, "POST", authorization=f"Bearer {TOKEN}").seen["who"] == "portal"


def test_the_header_counts_if_there_is_a_cookie_as_well(front: Front, route: str) -> None:
    """Otherwise any Authorization header would do in the place of the Origin."""
    for header in ("Basic x", "Bearer slipway_unknown", "Bearer"):
        answer = ask(front, route, "POST", authorization=header, cookie=JAR)
        assert answer.seen["who"] == "portal", header


def test_those_who_are_not_known_are_led_to_the_portal(front: Front, route: str) -> None:
    for jar in ("", "slipway-files=other", "slipway-files="):
        answer = ask(front, route, "GET", cookie=jar, X_Slipway_Files=hash_secret(SECRET))
        assert answer.seen["who"] == "portal"
        assert answer.sent("x-slipway-files") == [], "only HAProxy says who somebody is"


def test_other_hosts_do_not_lead_to_files(front: Front, route: str) -> None:
    assert ask(front, "evil.example.org", cookie=JAR).status in (400, 404)
    answer = front.app(PATH, cookie=JAR)
    assert answer.status != 200 or answer.seen["who"] == "portal"


def test_a_revoked_route_is_cut_at_once(front: Front, route: str) -> None:
    assert ask(front, route, cookie=JAR).seen["who"] == "app"
    front.routes.remove(KEY)
    assert ask(front, route, cookie=JAR).seen["who"] == "portal"


@pytest.fixture
def portal(front: Front) -> Iterator[PortalServer]:
    """The portal, whose next answers a test chooses; the routes of its token are removed."""
    yield front.portal
    front.portal.next_answers.clear()
    front.portal.requests.clear()
    front.routes.remove(TOKEN_KEY)


def started(front: Front, key: str = TOKEN_KEY) -> NextAnswer:
    """The portal's answer once a file server runs, to which it adds the route."""
    target = f"127.0.0.1@{front.gateway.server_port}@{NAME}"
    return 200, {"X-Slipway-Files": "started"}, lambda: front.routes.add(key, target)


STARTING: NextAnswer = (503, {"Retry-After": "1", "X-Slipway-Files": "starting"}, lambda: None)


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
@pytest.mark.parametrize("body", ["", "two words", "x" * 1_000_000])
def test_a_request_is_held_until_the_file_server_runs(
    front: Front, route: str, portal: PortalServer, scheme: str, body: str
) -> None:
    portal.next_answers += [STARTING, started(front)]
    word = {"Bearer": TOKEN, "Basic": b64encode(f"alice:{TOKEN}".encode()).decode()}[scheme]
    answer = front.ask(route, PATH, "PUT", body, authorization=f"{scheme} {word}", cookie=JAR)
    assert (answer.status, answer.seen["who"], answer.seen["body"]) == (200, "app", body)
    assert answer.seen["path"] == PATH
    assert answer.sent("authorization") == answer.sent("cookie") == []
    for request in portal.requests:
        assert request.startswith(f"PUT {PATH}\n")
        assert f"authorization: {scheme} {word}" in request
        assert f"x-slipway-files: {hash_secret(TOKEN)}" in request
        assert "x-forwarded-for: 127.0.0.1" in request
        assert JAR not in request, "a cookie beside a token counts for nothing"
        assert "content-length" not in request
    assert ask(front, route, authorization=f"{scheme} {word}").seen["who"] == "app"


def test_a_webdav_program_needs_to_follow_no_redirect(
    front: Front, route: str, portal: PortalServer
) -> None:
    portal.next_answers.append(started(front))
    answer = ask(front, route, "PROPFIND", authorization=f"Bearer {TOKEN}")
    assert answer.seen["who"] == "app"


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_request_is_carried_on_if_the_server_has_ended(
    front: Front, route: str, portal: PortalServer, method: str
) -> None:
    """The portal starts another one; it knows whose by the hash that HAProxy adds."""
    front.routes.add(KEY, f"127.0.0.1@{free_ports(1)}@{NAME}")
    portal.next_answers += [STARTING, started(front, KEY)]
    own = {"origin": f"http://{route}", "cookie": JAR, "X_Slipway_Files": "planted"}
    body = "x" * 500_000 if method == "PUT" else ""
    answer = front.ask(route, PATH, method, body, **own)
    assert (answer.seen["who"], answer.seen["body"]) == ("app", body)
    assert len(portal.requests) == 2
    for request in portal.requests:
        assert request.startswith(f"{method} {PATH}\n")
        assert f"x-slipway-files: {hash_secret(SECRET)}" in request
        assert JAR not in request
        assert "planted" not in request


def test_what_the_portal_refuses_is_passed_on(
    front: Front, route: str, portal: PortalServer
) -> None:
    challenge = 'Basic realm="Slipway"'
    portal.next_answers.append((401, {"WWW-Authenticate": challenge}, lambda: None))
    answer = front.ask(route, PATH, "PUT", "x" * 1000, authorization="Bearer unknown")
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, challenge)
    portal.next_answers.append((503, {"Retry-After": "7"}, lambda: None))
    answer = ask(front, route, authorization=f"Bearer {TOKEN}")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "7"), "a failed start"
    portal.next_answers.append((200, {"X-Slipway-Files": "started"}, lambda: None))
    answer = ask(front, route, authorization=f"Bearer {TOKEN}")
    assert answer.status == 403, "a token that was revoked meanwhile"


def test_a_browsers_password_leads_nowhere(front: Front, route: str, portal: PortalServer) -> None:
    """It would send it by itself, also for pages of other sites."""
    front.routes.add(TOKEN_KEY, f"127.0.0.1@{front.gateway.server_port}@{NAME}")
    word = b64encode(f"alice:{TOKEN}".encode()).decode()
    assert ask(front, route, authorization=f"Basic {word}").seen["who"] == "app"
    for header in ("origin", "sec_fetch_site"):
        portal.next_answers.append((200, {"X-Slipway-Files": "started"}, lambda: None))
        headers = {header: f"http://{route}", "authorization": f"Basic {word}"}
        assert ask(front, route, **headers).status == 403


def test_a_redirect_of_a_file_servers_is_refused(front: Front, route: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=10)
    front.gateway.redirects = True
    try:
        connection.request("GET", PATH, headers={"Host": route, "Cookie": JAR})
        assert connection.getresponse().status == 502
    finally:
        front.gateway.redirects = False
        connection.close()
