"""Messages of a WebSocket (RFC 6455), as a server: reading masked frames, writing plain ones."""

from __future__ import annotations

import base64
import hashlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader
    from typing import Final

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
CHUNK: Final = 64 * 1024
"""Bytes of a frame that are read at once."""
LONGEST_CONTROL: Final = 125
_SECRET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # from RFC 6455


class ProtocolError(Exception):
    """The peer violates the WebSocket protocol."""


def accept(key: str) -> str:
    """The answer to the browser's Sec-WebSocket-Key."""
    digest = hashlib.sha1(key.encode() + _SECRET, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def frame(kind: int, data: bytes) -> bytes:
    """A whole message in one frame."""
    size = len(data)
    if size <= LONGEST_CONTROL:
        head = bytes((0x80 | kind, size))
    elif size < 0x10000:
        head = bytes((0x80 | kind, 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 127)) + size.to_bytes(8, "big")
    return head + data


def unmask(data: bytes, mask: bytes) -> bytes:
    """Undo the mask, which begins with the first byte of `data`."""
    size = len(data)
    repeated = (mask * (size // 4 + 1))[:size]
    both = int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")
    return both.to_bytes(size, "big")


class Messages:
    """A browser's frames: pieces of binary messages, and control frames."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._left = 0
        self._mask = b""

    async def next(self) -> tuple[int, bytes]:
        """The kind of frame and its data, a long binary one in pieces.

        Raises ProtocolError, and asyncio.IncompleteReadError when the connection ends.
        """
        if not self._left:
            kind, size = await self._head()
            if kind >= CLOSE:
                return kind, unmask(await self._reader.readexactly(size), self._mask)
            self._left = size
        piece = await self._reader.readexactly(min(self._left, CHUNK))
        self._left -= len(piece)
        data = unmask(piece, self._mask)
        # The mask continues where this piece ends.
        turn = len(piece) % 4
        self._mask = self._mask[turn:] + self._mask[:turn]
        return BINARY, data

    async def _head(self) -> tuple[int, int]:
        first, second = await self._reader.readexactly(2)
        kind, size = first & 0x0F, second & 0x7F
        if first & 0x70 or not second & 0x80:
            raise ProtocolError("a frame with extensions, or without a mask")
        if kind not in (CONTINUATION, BINARY, CLOSE, PING, PONG):
            raise ProtocolError(f"a frame of the kind {kind}")
        if kind >= CLOSE and (size > LONGEST_CONTROL or not first & 0x80):
            raise ProtocolError("a control frame that is long or in parts")
        if size >= 126:
            size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
        self._mask = await self._reader.readexactly(4)
        return kind, size
