"""Limits of a real HAProxy on anonymous clients, and the responses beyond them."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from portal.core.apps.access import public_key
from portal.core.apps.origins import Mode
from tests.support.cluster import wait_for
from tests.unit.web.front import Front, Stream, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode, with the app's route added."""
    with running_front(tmp_path_factory.mktemp("front"), request.param) as running:
        running.routes.add(running.key, running.target)
        yield running


def _send(port: int, *parts: bytes, pause: float = 0.0, tls: bool = False) -> tuple[int, bytes]:
    """Status and text of the response to these pieces."""
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = stack.enter_context(context.wrap_socket(connection))
        for part in parts:
            with contextlib.suppress(OSError):
                connection.sendall(part)
            time.sleep(pause)
        data = b""
        with contextlib.suppress(OSError):
            connection.settimeout(15)
            while part := connection.recv(65536):
                data += part
                top, _, body = data.partition(b"\r\n\r\n")
                length = top.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
                if length and len(body) >= int(length):
                    break
    return int(data.split(b" ")[1]) if data else 0, data


def _head(front: Front, line: str, *headers: str) -> bytes:
    return "\r\n".join(
        [f"{line} HTTP/1.1", f"Host: localhost:{front.port}", *headers, "", ""]
    ).encode()


def test_a_body_arrives_completely_or_not_at_all(front: Front) -> None:
    start = _head(front, "POST /login", "Content-Length: 10")
    status, data = _send(front.port, start, b"12345", b"67890", pause=0.3)
    assert (status, b'"body": "1234567890"' in data) == (200, True)
    begun = time.monotonic()
    status, data = _send(front.port, start, *[b"1"] * 9, pause=1.2)
    assert status == 408
    assert time.monotonic() - begun < 14
    assert b"<h1" in data


@pytest.mark.parametrize(
    ("path", "length", "more", "status"),
    [
        ("/login", 16_384, "", 200),
        ("/login", 16_385, "", 413),
        ("/login", 16_385, "Cookie: slipway=x", 413),
        ("/api/v1/tokens", 20_000, "Authorization: Bearer x", 413),
        ("/sessions", 20_000, "", 413),
        ("/sessions", 20_000, "Cookie: slipway=x", 200),
        ("/api/v1/sessions", 1 << 20, "Authorization: Bearer x", 200),
        ("/api/v1/sessions", (1 << 20) + 1, "Authorization: Bearer x", 413),
    ],
)
def test_the_maximum_length_of_a_body(
    front: Front, path: str, length: int, more: str, status: int
) -> None:
    headers = [f"Content-Length: {length}", *([more] if more else [])]
    found, data = _send(front.port, _head(front, f"POST {path}", *headers), b"x" * length)
    assert found == status, data[:300]
    if status == 413 and path.startswith("/api/"):
        assert json.loads(data.partition(b"\r\n\r\n")[2])["status"] == 413


@pytest.mark.parametrize("side", ["portal", "runners"])
def test_short_chunked_bodies_are_accepted(front: Front, side: str) -> None:
    tls, port = side == "runners", front.runners_port if side == "runners" else front.port
    path = "/runner/v1/x" if tls else "/api/v1/sessions"
    headers = ("Authorization: Bearer x", "Transfer-Encoding: chunked")
    start = _head(front, f"GET {path}", *headers)
    assert _send(port, start, b"5\r\nhello\r\n", b"0\r\n\r\n", pause=0.2, tls=tls)[0] == 200
    pieces = [b"4000\r\n" + b"x" * 16384 + b"\r\n"] * 40
    begun = time.monotonic()
    status, data = _send(port, start, *pieces, tls=tls)
    assert status == 413, data[:300]
    assert json.loads(data.partition(b"\r\n\r\n")[2])["title"] == "Too large"
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("path", "header", "status"),
    [(f"/x?{'q' * 5000}", "", 414), ("/x", f"X-Long: {'x' * 20000}", 431)],
)
def test_long_heads_are_refused_in_the_clients_format(
    front: Front, path: str, header: str, status: int
) -> None:
    headers = [header] if header else []
    found, data = _send(front.port, _head(front, f"GET {path}", *headers))
    assert (found, b"Slipway" in data) == (status, True)
    found, data = _send(front.port, _head(front, f"GET /api/v1{path}", *headers))
    assert found == status
    assert json.loads(data.partition(b"\r\n\r\n")[2])["status"] == status


def test_cookies_of_a_request_do_not_apply_to_the_next(front: Front) -> None:
    """Data stored for a connection is dropped as soon as its cookies change."""
    key, host = public_key(front.label), urlsplit(front.origin).netloc
    front.routes.add(key, front.target)
    jars = [f"{front.cookie}; own=1", f"{front.cookie}; own=1", "own=2", "", f"{front.cookie}"]
    found = []
    with contextlib.closing(socket.create_connection(("127.0.0.1", front.app_port), 10)) as raw:
        for jar in jars:
            cookie = f"Cookie: {jar}\r\n" if jar else ""
            raw.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n".encode())
            data = b""
            while b'"body": ""}' not in data:
                data += raw.recv(65536)
            seen = json.loads(data.partition(b"\r\n\r\n")[2])
            found.append([value for name, value in seen["headers"] if name == "cookie"])
    front.routes.remove(key)
    assert found == [["own=1"], ["own=1"], ["own=2"], [], []]


def test_a_revoked_key_is_void_on_open_connections_too(front: Front) -> None:
    host = urlsplit(front.origin).netloc
    question = f"GET / HTTP/1.1\r\nHost: {host}\r\nCookie: {front.cookie}\r\n\r\n".encode()
    with contextlib.closing(socket.create_connection(("127.0.0.1", front.app_port), 10)) as raw:
        for who in ("app", "app", "portal"):
            if who == "portal":
                front.routes.remove(front.key)
            raw.sendall(question)
            data = b""
            while b'"body": ""}' not in data:
                data += raw.recv(65536)
            assert f'"who": "{who}"'.encode() in data
    front.routes.add(front.key, front.target)


@pytest.mark.parametrize("mode", ["ports", "subdomains"])
def test_connections_are_limited_by_address(
    tmp_path_factory: pytest.TempPathFactory, mode: Mode
) -> None:
    few: dict[str, Any] = {"connections_per_address": 10, "connections": 1000}
    most = (10 + (500 if mode == "ports" else 550)) // 2
    with (
        running_front(tmp_path_factory.mktemp("few"), mode, **few) as front,
        contextlib.ExitStack() as stack,
    ):
        front.routes.add(front.key, front.target)
        streams = [Stream(front) for _ in range(15)]
        for stream in streams:
            stack.callback(stream.close)
        assert all(stream.opened for stream in streams), "streams of an owner have more"
        silent = 0

        def is_full() -> bool:  # they are closed after ten seconds
            nonlocal silent
            for _ in range(10):
                with contextlib.suppress(ConnectionResetError):
                    place = ("127.0.0.1", front.app_port)
                    stack.enter_context(socket.create_connection(place, 10))
                silent += 1
            return silent > most - len(streams) and _is_closed(front.app_port)

        assert not _is_closed(front.app_port)
        wait_for("too many", is_full)
        assert streams[0].echoes(), "open connections stay open"
        if mode == "ports":  # the portal counts by itself
            assert not _is_closed(front.port)


def test_requests_are_limited_by_address(tmp_path: Path) -> None:
    with running_front(tmp_path, requests_per_second=20) as front:
        statuses = _many(front, 210)
        assert statuses[0] == 200
        assert statuses[-1] == 429
        assert 190 <= statuses.index(429) <= 200


@pytest.mark.parametrize(("path", "program"), [("/login", False), ("/api/v1/tokens", True)])
def test_connections_that_come_too_fast_get_an_answer(
    tmp_path: Path, path: str, program: bool
) -> None:
    """P8: others at the same address, such as a node, were told nothing."""
    with running_front(tmp_path, requests_per_second=20) as front:
        request, answers = _head(front, f"GET {path}"), []
        for _ in range(430):
            try:
                answers.append(_send(front.port, request))
            except ConnectionResetError:
                answers.append((0, b""))
        statuses = [status for status, _ in answers]
        refused = statuses.index(429)
        assert set(statuses[:refused]) == {200}
        closed = statuses.index(0)
        assert set(statuses[refused:closed]) == {429}
        assert 190 <= refused <= 210
        assert 380 <= closed <= 420, "far too many are closed without an answer"
        data = answers[closed - 1][1]
        assert b"retry-after: 10" in data
        assert (b"application/problem+json" in data) is program


def _is_closed(port: int) -> bool:
    """Whether a new connection is closed before anything is read from it."""
    try:
        with contextlib.closing(socket.create_connection(("127.0.0.1", port), 1)) as one_more:
            return one_more.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def _many(front: Front, count: int) -> list[int]:
    """The responses to `count` requests on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=10)
    found = []
    for _ in range(count):
        connection.request("GET", "/api/v1/x", headers={"Host": f"localhost:{front.port}"})
        answer = connection.getresponse()
        answer.read()
        found.append(answer.status)
    connection.close()
    return found
