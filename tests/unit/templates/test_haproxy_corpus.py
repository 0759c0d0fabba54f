"""Malformed and ambiguous requests through a real HAProxy: refused, or a single request."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.support.malformed_requests import ODD, PATHS, REFUSED, send
from tests.unit.web.front import Front, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode, with the app's route added."""
    with running_front(tmp_path_factory.mktemp("front"), request.param) as running:
        running.routes.add(running.key, running.target)
        yield running
        assert running.app().seen["who"] == "app", "HAProxy has crashed"
        assert running.ask(f"localhost:{running.port}").seen["who"] == "portal"


def place(front: Front, at_app: bool) -> tuple[int, str]:
    """Port and host name of the app, or of the portal."""
    name = front.origin.removeprefix("http://")
    return (front.app_port, name) if at_app else (front.port, f"localhost:{front.port}")


@pytest.mark.parametrize("at_app", [True, False], ids=["app", "portal"])
@pytest.mark.parametrize("case", REFUSED)
def test_refused_requests_reach_no_server(front: Front, case: str, at_app: bool) -> None:
    port, host = place(front, at_app)
    cookie = f"\r\nCookie: {front.cookie}\r\n\r\n".encode()
    data = REFUSED[case].replace(b"{host}", host.encode()).replace(b"\r\n\r\n", cookie, 1)
    answer = send(port, data)
    assert b'"who"' not in answer
    assert not answer or answer[9:10] == b"4", answer[:100]


@pytest.mark.parametrize("case", ODD)
def test_odd_requests_are_one_request_at_most(front: Front, case: str) -> None:
    port, host = place(front, at_app=True)
    answer = send(port, ODD[case].replace(b"{host}", host.encode()))
    assert b'"who": "app"' not in answer
    assert answer.count(b'"who"') <= 1


@pytest.mark.parametrize("path", PATHS)
def test_a_path_arrives_as_it_was_sent(front: Front, path: str) -> None:
    port, host = place(front, at_app=True)
    line = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n"
    inside = send(port, f"{line}Cookie: {front.cookie}\r\n\r\n".encode())
    if b"400 Bad" in inside[:20]:
        return
    assert b'"who": "app"' in inside
    assert path.partition("#")[0].replace("\\", "\\\\").encode() in inside
    assert b"X-Injected" not in inside.split(b"\r\n\r\n")[0]
    # Without the cookie none of them leads to the app.
    assert b'"who": "app"' not in send(port, f"{line}\r\n".encode())


def test_data_after_a_body_is_a_separate_request(front: Front) -> None:
    port, host = place(front, at_app=True)
    hidden = f"GET /hidden HTTP/1.1\r\nHost: {host}\r\n\r\n"
    both = (
        f"POST /first HTTP/1.1\r\nHost: {host}\r\nCookie: {front.cookie}\r\n"
        f"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
    )
    answer = send(port, both.encode())
    # The hidden one has no cookie: it must not profit from the first one's.
    assert answer.count(b'"who": "app"') <= 1
    assert b'"path": "/hidden"' not in answer or b'"who": "portal"' in answer


def test_pipelined_requests_are_checked_separately(front: Front) -> None:
    port, host = place(front, at_app=True)
    good = f"GET /mine HTTP/1.1\r\nHost: {host}\r\nCookie: {front.cookie}\r\n\r\n"
    bad = f"GET /other HTTP/1.1\r\nHost: {host}\r\n\r\n"
    last = good.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
    answer = send(port, (good + bad + last).encode(), ends=False)
    assert answer.count(b'"who": "app"') == 2
    assert answer.count(b'"who": "portal"') == 1
