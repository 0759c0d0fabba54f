"""The upstream of the routes of bench/proxy.py, beside nginx with its files: an echo and a sink.

    python -m bench.upstream SOCKET PORT

listens on both. `GET` with `Upgrade` switches protocols, and from then on every byte is echoed: the
content of a WebSocket does not matter to a proxy. `POST` with `Content-Length` is read to its end,
discarded, and then answered.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import sys
from typing import cast

BUFFER = 1 << 20
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: %s\r\n\r\n"
)
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


class Upstream(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(BUFFER))
        self._head = b""
        self._echo = False
        self._missing = 0
        """Remaining bytes of the body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Disable Nagle: send small messages at once."""
        self._transport = cast(asyncio.Transport, transport)
        connection = transport.get_extra_info("socket")
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:
        """One buffer for everything."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Data received."""
        if self._echo:
            self._transport.write(bytes(self._buffer[:nbytes]))
        elif self._missing:
            self._swallow(nbytes)
        else:
            self._begin(bytes(self._buffer[:nbytes]))

    def _begin(self, part: bytes) -> None:
        """The head of a request, possibly with the first bytes of its body."""
        self._head += part
        head, end, body = self._head.partition(b"\r\n\r\n")
        if not end:
            return
        self._head = b""
        pairs = (line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        lines = {name.lower(): value for name, value in pairs}
        if b"upgrade" in lines:
            digest = hashlib.sha1(lines[b"sec-websocket-key"] + GUID, usedforsecurity=False)
            self._echo = True
            self._transport.write(SWITCH % base64.b64encode(digest.digest()))
            return
        self._missing = int(lines[b"content-length"])
        self._swallow(len(body))

    def _swallow(self, count: int) -> None:
        self._missing -= count
        if self._missing == 0:
            self._transport.write(DONE)


async def serve(path: str, port: int) -> None:
    """Listen until ended."""
    loop = asyncio.get_running_loop()
    await loop.create_unix_server(Upstream, path)
    server = await loop.create_server(Upstream, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
