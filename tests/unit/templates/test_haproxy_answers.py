"""Responses that HAProxy copies, since the request's body has not arrived, are the portal's own."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
from collections.abc import Iterator
from http.client import HTTPMessage, HTTPResponse

import pytest

from tests.unit.web.front import Front, running_front
from tests.unit.web.gunicorn_site import behind

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

CHANGING = {"date", "x-request-id", "content-security-policy", "set-cookie", "connection"}


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with running_front(tmp_path_factory.mktemp("front"), "ports") as running, behind(running):
        yield running


def ask(port: int, head: str, body: bytes) -> tuple[int, HTTPMessage, bytes]:
    """Status, headers and body of a response; what is sent may be shorter than announced."""
    lines = f"{head}\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), 15)) as stream:
        stream.sendall(lines.encode() + body)
        response = HTTPResponse(stream)
        response.begin()
        return response.status, response.msg, response.read()


@pytest.mark.parametrize(
    ("line", "more", "is_json"),
    [
        ("PUT /data/files/home/x HTTP/1.1", "", True),
        ("POST /data/uploads/ HTTP/1.1", "", True),
        ("PUT /data/dav/home/x HTTP/1.1", "", None),
        ("POST /api/v1/sessions HTTP/1.1", "Authorization: Bearer slipway_forged\r\n", True),
        ("POST /sessions/end HTTP/1.1", "Cookie: slipway=forged\r\n", False),
    ],
)
def test_a_response_to_an_incomplete_request(
    front: Front, line: str, more: str, is_json: bool | None
) -> None:
    begin = f"{line}\r\n{more}Content-Length: "
    complete = ask(front.port, f"{begin}0", b"")
    incomplete = ask(front.port, f"{begin}900000", b"x" * 60_000)
    if is_json is None:
        assert incomplete[0] == complete[0]
    elif is_json:
        assert {"status", "title"} <= set(json.loads(incomplete[2]))
    else:
        assert b"%0A" not in incomplete[2]
    kept = {name.lower() for name in complete[1]} - CHANGING - {"content-length"}
    if incomplete[0] == complete[0]:
        assert kept <= {name.lower() for name in incomplete[1]}
        assert b"%0A" not in incomplete[2]


def test_metrics_are_sent_as_they_are(front: Front) -> None:
    status, _, text = ask(front.watch_port, "GET /metrics HTTP/1.1", b"")
    assert (status, text[-1:]) == (200, b"\n")
    assert b"%0A" not in text
