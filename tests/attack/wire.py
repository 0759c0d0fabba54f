"""Raw bytes to a running portal, and the response: HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.support.client import LOOPBACK, port_of
from tests.support.cluster import tls

SECONDS = 15.0
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")

Pairs = list[tuple[bytes, bytes]]


@contextlib.contextmanager
def connected(url: str, protocols: list[str] | None = None) -> Iterator[socket.socket]:
    """A connection to an origin, over TLS if the origin uses https."""
    parts = urlsplit(url)
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(socket.create_connection((LOOPBACK, port_of(url)), SECONDS))
        if parts.scheme == "https":
            context = tls()
            context.set_alpn_protocols(protocols or ["http/1.1"])
            stream = stack.enter_context(
                context.wrap_socket(stream, server_hostname=parts.hostname)
            )
        yield stream


def exchange(url: str, data: bytes) -> bytes:
    """Send these bytes, and read until the connection is quiet.

    A client that half-closes is taken for one that has left, whose request ends.
    """
    with connected(url) as stream:
        answer = b""
        with contextlib.suppress(OSError):
            stream.sendall(data)
        with contextlib.suppress(OSError):
            while part := stream.recv(65536):
                answer += part
                stream.settimeout(1.5)
    return answer


def statuses(answer: bytes) -> list[int]:
    """The status of each response."""
    return [int(found) for found in STATUS.findall(answer)]


# --- HTTP/2, as far as an attack needs it: headers are sent literally, no response is decoded ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, CONTINUATION = 0, 1, 3, 4, 7, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INDEXED = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
STATUS_NAMES = range(8, 15)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame."""
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + payload
    )


def block(pairs: Pairs) -> bytes:
    """A header block in which every name and value is a literal."""
    return b"".join(b"\x00" + _string(name) + _string(value) for name, value in pairs)


def _string(text: bytes) -> bytes:
    size, head = len(text), b""
    if size >= 127:
        head, size = b"\x7f", size - 127
        while size >= 128:
            head, size = head + bytes((size % 128 + 128,)), size // 128
    return head + bytes((size,)) + text


@dataclass
class Received:
    """The streams of a connection and their outcome."""

    statuses: list[int] = field(default_factory=list)
    resets: int = 0
    ended: bool = False
    body: bytes = b""


def exchange_h2(url: str, frames: bytes) -> Received:
    """Open HTTP/2, send these frames, and read until all streams end or the server closes."""
    heard = Received()
    with connected(url, ["h2"]) as stream, contextlib.suppress(OSError):
        stream.sendall(PREFACE + frame(SETTINGS, 0, 0, b"") + frames)
        stream.settimeout(3)
        data = b""
        while part := stream.recv(65536):
            data = _take(data + part, heard)
            if heard.ended or heard.resets:
                stream.settimeout(0.5)
    return heard


def _take(data: bytes, heard: Received) -> bytes:
    """Process complete frames; the remaining bytes."""
    while len(data) >= 9:
        size = int.from_bytes(data[:3], "big")
        if len(data) < 9 + size:
            break
        kind, flags, payload = data[3], data[4], data[9 : 9 + size]
        data = data[9 + size :]
        if kind == HEADERS:
            heard.statuses.append(_status(payload))
        elif kind == DATA:
            heard.body += payload
        elif kind == RST_STREAM:
            heard.resets += 1
        if kind == GOAWAY or (kind in (HEADERS, DATA) and flags & END_STREAM):
            heard.ended = True
    return data


def _status(payload: bytes) -> int:
    """The status, which is the first header and which HAProxy does not compress."""
    while payload and payload[0] >> 5 == 1:  # the table's size
        payload = payload[1:]
    if payload[0] in INDEXED:
        return INDEXED[payload[0]]
    # A literal whose name is one of the table's :status entries.
    assert payload[0] & 0x0F in STATUS_NAMES, payload[:20]
    assert payload[1] == 3, payload[:20]
    return int(payload[2:5])
