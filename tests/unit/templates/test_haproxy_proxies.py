"""Proxies of the site in front of a real HAProxy: only they tell a client's address."""

from __future__ import annotations

import contextlib
import json
import select
import shutil
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from portal.config import WebSettings
from portal.core.apps.origins import Mode
from tests.unit.web.front import Front, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

PROXY, STRANGER = "127.0.0.9", "127.0.0.8"
EACH = 12
"""Simultaneous connections of one address."""


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode, with the app's route added."""
    mode: Mode = request.param
    folder = tmp_path_factory.mktemp("front")
    more: dict[str, Any] = {
        "trusted_proxies": [PROXY],
        "connections_per_address": EACH,
        "requests_per_second": 10,
    }
    with running_front(folder, mode, **more) as running:
        running.routes.add(running.key, running.target)
        yield running


def claim(address: str, port: int = 80) -> bytes:
    """The PROXY protocol's first line, for a client of this address that connected to a port."""
    family, here = ("TCP6", "::1") if ":" in address else ("TCP4", "127.0.0.1")
    return f"PROXY {family} {address} {here} 4444 {port}\r\n".encode()


def connect(front: Front, source: str, first: bytes = b"", port: int = 0) -> socket.socket:
    """A connection from this address, which begins with these bytes."""
    found = socket.create_connection(
        ("127.0.0.1", port or front.port), 10, source_address=(source, 0)
    )
    if first:
        found.sendall(first)
    return found


def ask(connection: socket.socket, host: str, *headers: str) -> tuple[int, dict[str, list[str]]]:
    """The status of the response, and the headers that the server has seen, by name."""
    lines = ["GET /x HTTP/1.1", f"Host: {host}", *headers, "", ""]
    data = b""
    with contextlib.suppress(OSError):
        connection.sendall("\r\n".join(lines).encode())
        while part := connection.recv(65536):
            data += part
            top, _, body = data.partition(b"\r\n\r\n")
            length = top.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            if length and len(body) >= int(length):
                break
    status = int(data.split(b" ")[1]) if data.startswith(b"HTTP/") else 0
    seen: dict[str, list[str]] = {}
    if status == 200:
        for name, value in json.loads(data.partition(b"\r\n\r\n")[2])["headers"]:
            seen.setdefault(name, []).append(value)
    return status, seen


def seen_as(front: Front, source: str, first: bytes = b"", *headers: str) -> list[str]:
    """The client's address as the portal sees it; [] if the request is refused."""
    with connect(front, source, first) as connection:
        status, seen = ask(connection, f"localhost:{front.port}", *headers)
    return seen["x-forwarded-for"] if status == 200 else []


def test_the_client_is_whom_a_proxy_of_the_site_names(front: Front) -> None:
    assert seen_as(front, PROXY, claim("203.0.113.5")) == ["203.0.113.5"]
    assert seen_as(front, PROXY, claim("2001:db8::5")) == ["2001:db8::5"]
    forged = "X-Forwarded-For: 198.51.100.1"
    assert seen_as(front, PROXY, claim("203.0.113.6"), forged) == ["203.0.113.6"]


def test_an_app_sees_the_client_as_well(front: Front) -> None:
    host = front.origin.partition("://")[2]
    port = int(host.rpartition(":")[2])
    with connect(front, PROXY, claim("203.0.113.7", port), port) as connection:
        status, seen = ask(connection, host, f"Cookie: {front.cookie}")
    assert (status, seen.get("x-forwarded-for")) == (200, ["203.0.113.7"])


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_nobody_else_claims_an_address_by_a_header(front: Front, header: str) -> None:
    value = "for=198.51.100.1" if header == "Forwarded" else "198.51.100.1"
    for twice in ((), (f"{header}: 127.0.0.9",)):
        seen = seen_as(front, STRANGER, b"", f"{header}: {value}", *twice)
        assert seen == [STRANGER]


@pytest.mark.parametrize(
    "first",
    [
        claim("198.51.100.1"),
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc6\x33\x64\x01\x7f\0\0\x01\0\1\0\2",
    ],
    ids=["version 1", "version 2"],
)
def test_nobody_else_claims_an_address_by_the_protocol(front: Front, first: bytes) -> None:
    assert seen_as(front, STRANGER, first) == []
    assert seen_as(front, STRANGER) == [STRANGER]


def test_a_proxy_that_names_nobody_gets_nothing(front: Front) -> None:
    """Otherwise all of its clients would be one."""
    assert seen_as(front, PROXY) == []


def test_clients_behind_a_proxy_are_limited_one_by_one(front: Front) -> None:
    with contextlib.ExitStack() as stack:
        many = [
            stack.enter_context(connect(front, PROXY, claim("203.0.113.50")))
            for _ in range(EACH + 5)
        ]
        found = [ask(one, f"localhost:{front.port}")[0] for one in many]
        assert set(found) == {200}
        closed = [one for one in many if select.select([one], [], [], 0.2)[0]]
        assert 5 <= len(closed) <= 6
        assert seen_as(front, PROXY, claim("203.0.113.51")) == ["203.0.113.51"]
    busy = claim("203.0.113.60")
    with connect(front, PROXY, busy) as connection:
        host = f"localhost:{front.port}"
        statuses = {ask(connection, host)[0] for _ in range(150)}
    assert 429 in statuses
    assert seen_as(front, PROXY, busy) == []
    assert seen_as(front, PROXY, claim("203.0.113.61")) == ["203.0.113.61"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("proxy.example.org", "is not an address or a network"),
        ("192.0.2.7/24", "host bits"),
        ("0.0.0.0/0", "everybody"),
        ("::/0", "everybody"),
        ("192.0.2.7 }", "is not an address"),
    ],
)
def test_what_cannot_be_trusted(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WebSettings.model_validate({"trusted_proxies": [text]})
