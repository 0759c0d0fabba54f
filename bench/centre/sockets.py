"""WebSockets of browsers, thousands of them in one process."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets

from bench.centre.http import LONGEST, NOTHING, Portal
from tests.support.websockets import masked

PING, PONG = 0x9, 0xA


class WebSocket:
    """One WebSocket, from an address of its own."""

    def __init__(self, portal: Portal, address: str, cookies: str) -> None:
        self._portal = portal
        self._address = address
        self._cookies = cookies
        self.stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, path: str) -> int:
        """Open it; returns the status of the answer, 101 for success, 0 without any."""
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {self._portal.host}\r\nOrigin: {self._portal.origin}\r\n"
            f"Cookie: {self._cookies}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
        )
        try:
            reader, writer = await self._portal.connect(self._address)
            writer.write(request.encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), LONGEST)
        except (OSError, EOFError, TimeoutError):
            return NOTHING
        status = int(head.split()[1])
        if status == 101:
            self.stream = reader, writer
        else:
            writer.close()
        return status

    async def ping(self) -> bool:
        """Whether the app answers a ping; messages of its own are skipped."""
        if self.stream is None:
            return False
        reader, writer = self.stream
        writer.write(masked(PING, b"centre"))
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            async with asyncio.timeout(LONGEST):
                while await self._frame(reader) != PONG:
                    pass
            return True
        return False

    @staticmethod
    async def _frame(reader: asyncio.StreamReader) -> int:
        """Read a frame; returns its kind."""
        first, second = await reader.readexactly(2)
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8))
        await reader.readexactly(size)
        return first & 0x0F

    def close(self) -> None:
        """Close the connection."""
        if self.stream is not None:
            self.stream[1].close()
