"""What docs/developers/app.md promises to an app, behind a real HAProxy."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from portal.cli.render import haproxy_config
from portal.config import Settings
from portal.core.apps.access import hub_key, public_key
from portal.core.apps.origins import Mode
from portal.node.runner.apps import netns
from tests.support.paths import TEMPLATES
from tests.unit.web import front as fronts
from tests.unit.web.front import SESSION, Answer, Front, Stream, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

NAMES = itertools.count()


def hours_as_seconds(settings: Settings) -> str:
    """The configuration with each hour as a second, so that a test can wait for it."""
    return re.sub(r"\b([0-9]+)h\b", r"\1s", haproxy_config(settings))


@pytest.fixture(scope="module", params=["ports", "subdomains", "https"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode; with https, another proxy ends TLS."""
    folder = tmp_path_factory.mktemp("front")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fronts, "render", hours_as_seconds)
        mode: Mode = "subdomains" if request.param == "https" else request.param
        web: dict[str, Any] = (
            {"public_url": "https://localhost"} if request.param == "https" else {}
        )
        with running_front(folder, mode, **web) as running:
            yield running


@pytest.fixture(autouse=True)
def route(front: Front) -> Iterator[str]:
    """The app's route, to a server by a name of this test's own."""
    target = f"127.0.0.1@{front.gateway.server_port}@app{next(NAMES)}.{SESSION}.slipway"
    front.routes.add(front.key, target)
    yield target
    front.gateway.closes = 0
    front.routes.remove(front.key)


def answered(front: Front, *, status: int = 200, **headers: str) -> Answer:
    """The response of an app that answers with these headers; underscores stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return front.app("/", X_Answer=json.dumps(named), X_Status=str(status))


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/deep/a%2Fb%20c/%C3%A9?x=1&y=%26z%2F+q",
        "/%ff/x",
        "//two//slashes/",
        "/a/../b/./c",
        "/semi;colon=1/?",
        "/q?next=http://other.example.org/%2e%2e",
    ],
)
def test_an_address_arrives_byte_for_byte(front: Front, path: str) -> None:
    assert front.app(path).seen["path"] == path


def test_the_app_learns_its_own_origin_and_its_client(front: Front) -> None:
    answer = front.app("/", X_Forwarded_For="6.6.6.6", X_Forwarded_Proto="gopher", Forwarded="x")
    own = urlsplit(front.origin)
    assert answer.sent("host") == [own.netloc]
    assert answer.sent("x-forwarded-proto") == [own.scheme]
    assert answer.sent("x-forwarded-for") == ["127.0.0.1"]
    assert answer.sent("forwarded") == []


def test_header_names_with_an_underscore_do_not_arrive(front: Front) -> None:
    headers = [("Cookie", front.cookie), ("api_key", "lost"), ("Api-Key", "kept")]
    host = urlsplit(front.origin).netloc
    answer = front.raw(host, "/", "GET", "", headers, front.app_port)
    assert (answer.sent("api-key"), answer.sent("api_key")) == (["kept"], [])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("origin", "site", "passes"),
    [
        ("null", "same-origin", True),
        ("null", "same-site", False),
        ("null", "cross-site", False),
        ("null", "none", False),
        ("null", None, False),
        ("https://other.example.org", "same-origin", False),
    ],
)
def test_an_own_form_without_referrer_arrives(
    front: Front, method: str, origin: str, site: str | None, passes: bool
) -> None:
    """A page with `Referrer-Policy: no-referrer` sends its own forms with `Origin: null`."""
    said = {"Sec_Fetch_Site": site} if site else {}
    answer = front.app("/form", method, Origin=origin, **said)
    assert answer.status == (200 if passes else 403)


def test_a_websocket_always_says_its_origin(front: Front) -> None:
    websocket = {"Upgrade": "websocket", "Connection": "Upgrade"}
    websocket |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version": "13"}
    answer = front.app("/ws", Origin="null", Sec_Fetch_Site="same-origin", **websocket)
    assert answer.status == 403


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["owner", "visitor"])
def test_a_request_may_be_silent_for_more_than_an_hour(front: Front, route: str, who: str) -> None:
    if who == "visitor":
        front.routes.add(public_key(front.label), route)
    cookie = front.cookie if who == "owner" else ""
    answer = front.app("/compute", "POST", X_Pause="3", cookie=cookie)
    front.routes.remove(public_key(front.label))
    assert (answer.status, answer.seen["who"]) == (200, "app")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_request_by_http2_may_be_silent_as_long(front: Front) -> None:
    host = urlsplit(front.origin).netloc
    ask = ["curl", "-s", "--http2-prior-knowledge", f"http://127.0.0.1:{front.app_port}/compute"]
    headers = [f"Host: {host}", f"Cookie: {front.cookie}", "X-Pause: 3"]
    told = [word for header in headers for word in ("-H", header)]
    done = subprocess.run([*ask, *told], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout)["who"] == "app"


def test_a_server_of_jupyterhubs_may_be_silent_as_long(front: Front, route: str) -> None:
    key = hub_key(SESSION)
    front.routes.add_path("/user/alice/", key)
    front.routes.add(key, route)
    answer = front.hub("/user/alice/compute", X_Pause="3")
    front.routes.remove(key)
    front.routes.set_paths({})
    assert (answer.status, answer.seen["who"]) == (200, "app")


def test_a_websocket_may_be_silent_as_long(front: Front) -> None:
    with closing(Stream(front)) as stream:
        assert stream.opened
        threading.Event().wait(3)
        assert stream.echoes()


LONG = 20
"""Seconds; less than a day, as the configuration here has it."""


def leave(front: Front, port: int, lines: list[str]) -> None:
    """Send a request that the app answers after LONG seconds, and do not wait for it."""
    front.gateway.left.clear()
    with closing(socket.create_connection(("127.0.0.1", port), 20)) as connection:
        lines = [*lines, f"X-Pause: {LONG}", "Content-Length: 0", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        assert not front.gateway.left.wait(0.5)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_ends_with_its_client(front: Front, method: str) -> None:
    """Nobody's closed window holds one of the app's connections for a day."""
    host = urlsplit(front.origin).netloc
    lines = [f"{method} /compute HTTP/1.1", f"Host: {host}", f"Cookie: {front.cookie}"]
    leave(front, front.app_port, lines)
    assert front.gateway.left.wait(LONG / 2)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_request_by_http2_ends_with_its_client(front: Front) -> None:
    front.gateway.left.clear()
    host = urlsplit(front.origin).netloc
    ask = ["curl", "-s", "--http2-prior-knowledge", "-m", "1"]
    headers = [f"Host: {host}", f"Cookie: {front.cookie}", f"X-Pause: {LONG}"]
    told = [word for header in headers for word in ("-H", header)]
    done = subprocess.run(
        [*ask, *told, f"http://127.0.0.1:{front.app_port}/compute"], check=False, timeout=60
    )
    assert done.returncode == 28  # its time is over
    assert front.gateway.left.wait(LONG / 2)


def test_a_request_of_jupyterhubs_ends_with_its_client(front: Front, route: str) -> None:
    key = hub_key(SESSION)
    front.routes.add_path("/user/alice/", key)
    front.routes.add(key, route)
    leave(front, front.hub_port, ["GET /user/alice/compute HTTP/1.1", "Host: hub.example.org"])
    ended = front.gateway.left.wait(LONG / 2)
    front.routes.remove(key)
    front.routes.set_paths({})
    assert ended


# --- once or twice --------------------------------------------------------------------------------


def times_run(front: Front, method: str = "GET", **headers: str) -> int:
    """How often an app gets a request that it never answers."""
    front.gateway.closes = 10
    with closing(socket.create_connection(("127.0.0.1", front.app_port), 20)) as connection:
        host = urlsplit(front.origin).netloc
        lines = [f"{method} /dies HTTP/1.1", f"Host: {host}", f"Cookie: {front.cookie}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "Content-Length: 0", "", ""]).encode())
        connection.recv(1000)
    return 10 - front.gateway.closes


def test_a_request_on_a_new_connection_is_sent_once(front: Front) -> None:
    assert times_run(front) == 1
    assert times_run(front) == 1
    answered(front, Connection="close")
    assert times_run(front) == 1


def test_a_get_on_a_connection_that_was_idle_is_sent_once_more(front: Front) -> None:
    assert front.app().status == 200
    front.gateway.closes = 1
    assert front.app("/again").status == 200
    assert times_run(front) == 2


def test_what_changes_something_is_sent_once(front: Front) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert front.app("/", method).status == 200
        assert times_run(front, method) == 1
        front.gateway.closes = 0


# --- answers --------------------------------------------------------------------------------------


def test_the_port_of_apps_is_the_runners() -> None:
    assert f":{netns.PORT}(" in haproxy_config(fronts.make_settings(TEMPLATES))


@pytest.mark.parametrize("header", ["Location", "Content-Location", "Refresh"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::]"])
def test_an_address_where_the_app_listens_becomes_its_origin(
    front: Front, header: str, host: str
) -> None:
    before = "0; url=" if header == "Refresh" else ""
    for rest in ("", "/", "/a%2Fb?c=http://127.0.0.1:8080/#d", "?x"):
        answer = answered(front, status=200, **{header: f"{before}http://{host}:8080{rest}"})
        assert answer.headers[header] == f"{before}{front.origin}{rest}"


@pytest.mark.parametrize(
    "place",
    [
        "/relative",
        "relative:8080/x",
        "http://127.0.0.1:80801/",
        "http://127.0.0.1:8081/",
        "http://127.0.0.1/",
        "http://localhost.example.org:8080/",
        "https://other.example.org/http://127.0.0.1:8080/",
        "http://user@127.0.0.1:8080.example.org/",
    ],
)
def test_other_addresses_stay(front: Front, place: str) -> None:
    assert answered(front, status=302, Location=place).headers["Location"] == place


def test_its_own_address_without_tls_becomes_its_origin(front: Front) -> None:
    insecure = front.origin.replace("https:", "http:")
    answer = answered(front, status=302, Location=f"{insecure}/next?x#y")
    assert answer.headers["Location"] == f"{front.origin}/next?x#y"
    other = f"{insecure}.example.org/next"
    assert answered(front, status=302, Location=other).headers["Location"] == other


@pytest.mark.parametrize("status", [401, 404, 418, 500, 502, 503])
def test_an_error_page_is_shown_as_it_is(front: Front, status: int) -> None:
    answer = answered(front, status=status)
    assert (answer.status, answer.seen["who"]) == (status, "app")


def test_its_cookies_stay_at_its_origin(front: Front) -> None:
    answer = answered(front, Set_Cookie="mine=1; Path=/; Domain=example.org; HttpOnly")
    assert "mine=1; Path=/; HttpOnly" in (answer.headers.get_all("Set-Cookie") or [])
    assert front.app(cookie=f"{front.cookie}; mine=1").sent("cookie") == ["mine=1"]


def test_headers_with_an_effect_beyond_its_origin_are_removed(front: Front) -> None:
    names = ("Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "NEL", "Report-To")
    answer = answered(
        front, status=200, **dict.fromkeys(names, "x"), Access_Control_Allow_Origin="*"
    )
    assert not [name for name in (*names, "Access-Control-Allow-Origin") if name in answer.headers]
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_dot_behind_the_name_leads_to_the_same_app(front: Front, method: str) -> None:
    own = urlsplit(front.origin)
    dotted = f"{own.hostname}.{f':{own.port}' if own.port else ''}"
    answer = front.app("/a%2Fb?c=d", method, host=dotted)
    assert (answer.status, answer.headers["Location"]) == (308, f"{front.origin}/a%2Fb?c=d")


def test_a_dot_behind_the_name_leads_to_the_portal(front: Front) -> None:
    own = urlsplit(front.web.public_url)
    dotted = f"LocalHost.{f':{own.port}' if own.port else ''}"
    for path in ("/sessions?x=%2F", "/api/v1/sessions", "/data/files/storage/a"):
        answer = front.ask(dotted, path)
        where = f"{front.web.public_url.rstrip('/')}{path}"
        assert (answer.status, answer.headers["Location"]) == (308, where)


@pytest.mark.parametrize("host", ["other.example.org.", "localhost..", "."])
def test_other_names_with_a_dot_lead_nowhere(front: Front, host: str) -> None:
    assert front.ask(host).status in (400, 404, 421)
