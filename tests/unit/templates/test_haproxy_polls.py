"""Polls of open pages have few slots of a real HAProxy, and never keep other requests waiting."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.cluster import wait_for
from tests.unit.web.front import Front, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")
POLL = "/sessions/rows"


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    """A HAProxy."""
    with running_front(tmp_path, "ports") as running:
        yield running


def poll(front: Front, pause: int, address: str = "127.0.0.1") -> socket.socket:
    """Begin a poll that the portal answers after some seconds."""
    connection = socket.create_connection(("127.0.0.1", front.port), 20, (address, 0))
    host = urlsplit(front.web.public_url).netloc
    head = f"GET {POLL} HTTP/1.1\r\nHost: {host}\r\nX-Pause: {pause}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def test_polls_wait_for_each_other_only(front: Front) -> None:
    host = urlsplit(front.web.public_url).netloc
    slots = front.web.requests_in_progress * 2 // 5
    waiting = front.web.requests_in_progress * 25
    with ExitStack() as stack:
        # A few more: some may be refused while HAProxy's threads count what waits.
        for number in range(slots + waiting + 20):
            # An address may send 300 requests a second.
            stack.enter_context(poll(front, 20, f"127.0.1.{number // 100 + 1}"))
        refused = wait_for("a refusal", lambda: refusal(front))
        assert "retry-after: 5" in refused
        assert "x-slipway-busy: yes" in refused
        assert "more requests than it can answer" in refused
        for method, path in (("POST", "/sessions"), ("GET", "/sessions"), ("GET", "/healthz")):
            assert front.ask(host, path, method).status == 200, path
    wait_for("polls again", lambda: " 200 ok" in answer_to_poll(front), 60)


def refusal(front: Front) -> str | None:
    """The answer to a poll that is refused at once; None while polls wait."""
    answer = answer_to_poll(front)
    return answer if " 503 " in answer else None


def answer_to_poll(front: Front) -> str:
    """The answer to a poll, in lower case; empty while it waits."""
    with poll(front, 0) as connection, suppress(TimeoutError):
        connection.settimeout(2)
        return connection.recv(65536).decode().lower()
    return ""
