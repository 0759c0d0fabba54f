"""Raw bytes on a connection to the portal: requests that no HTTP library would send."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.support.client import LOOPBACK
from tests.support.cluster import Cluster


@dataclass(frozen=True)
class Answer:
    """Everything received, and how long it took."""

    data: bytes
    seconds: float
    ended: bool
    """Whether the server closed the connection."""

    @property
    def status(self) -> int:
        """The first response's status; 0 without a response."""
        words = self.data.split(b" ", 2)
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0

    @property
    def answers(self) -> int:
        """The number of responses."""
        return self.data.count(b"HTTP/1.1 ")

    @property
    def problem(self) -> dict[str, Any]:
        """The problem document (RFC 9457)."""
        head, _, body = self.data.partition(b"\r\n\r\n")
        assert b"content-type: application/problem+json" in head.lower(), self.data
        found: dict[str, Any] = json.loads(body)
        return found


def open_connection(cluster: Cluster) -> socket.socket:
    """A new connection to the portal, with TLS if the portal uses https."""
    parts = urlsplit(cluster.url)
    plain = socket.create_connection((LOOPBACK, cluster.port), 10)
    if parts.scheme != "https":
        return plain
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=parts.hostname)


def head(cluster: Cluster, line: str, *headers: str) -> bytes:
    """The head of a request to the portal."""
    host = f"Host: {urlsplit(cluster.url).netloc}"
    return "\r\n".join([f"{line} HTTP/1.1", host, *headers, "", ""]).encode()


def listen(connection: socket.socket, seconds: float, since: float | None = None) -> Answer:
    """Read until the server closes the connection, or for `seconds`."""
    begun = time.monotonic() if since is None else since
    deadline = time.monotonic() + seconds
    data, ended = b"", False
    while (left := deadline - time.monotonic()) > 0 and not ended:
        connection.settimeout(left)
        with contextlib.suppress(TimeoutError):
            try:
                part = connection.recv(65536)
            except ConnectionError:
                part = b""
            ended = not part
            data += part
    return Answer(data, time.monotonic() - begun, ended)


def first_answer(connection: socket.socket, seconds: float) -> Answer:
    """Read until a response is complete by its Content-Length, or for `seconds`."""
    begun, data = time.monotonic(), b""
    while time.monotonic() - begun < seconds:
        part = listen(connection, 0.3)
        data += part.data
        top, found, body = data.partition(b"\r\n\r\n")
        length = [line for line in top.lower().split(b"\r\n") if line[:15] == b"content-length:"]
        if part.ended or (found and length and len(body) >= int(length[0][15:])):
            return Answer(data, time.monotonic() - begun, part.ended)
    return Answer(data, time.monotonic() - begun, False)


def send(cluster: Cluster, *parts: bytes, pause: float = 0.0, seconds: float = 15.0) -> Answer:
    """Send pieces with a pause between them, and read the response."""
    with open_connection(cluster) as connection:
        begun = time.monotonic()
        for number, part in enumerate(parts):
            time.sleep(pause if number else 0)
            with contextlib.suppress(ConnectionError):  # already refused; see the response
                connection.sendall(part)
        answer = first_answer(connection, seconds)
        return Answer(answer.data, time.monotonic() - begun, answer.ended)


@contextlib.contextmanager
def held(
    cluster: Cluster, count: int, *parts: bytes, bare: bool = False
) -> Iterator[list[socket.socket]]:
    """Open `count` connections that have all sent these parts, then nothing.

    `bare`: without TLS, and without the connections that are refused immediately.
    """
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            try:
                place = (LOOPBACK, cluster.port)
                new = socket.create_connection(place, 10) if bare else open_connection(cluster)
            except ConnectionResetError:
                if not bare:
                    raise
                continue
            connection = stack.enter_context(new)
            for part in parts:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(part)
            found.append(connection)
        yield found


def alive(connections: list[socket.socket]) -> list[socket.socket]:
    """The connections that the server has not closed (nor answered)."""
    open_ones = []
    for connection in connections:
        connection.setblocking(False)
        try:
            # Peek below TLS, since TLS does not support peeking.
            gone = socket.socket.recv(connection, 1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        if not gone:
            open_ones.append(connection)
    return open_ones
