"""Serves the desktop's page on a unix socket, and connects its WebSockets with the VNC server."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os

from . import websocket
from .websocket import BINARY, CLOSE, PING, PONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Mapping

WINDOWS = 16
"""Open windows at once: each costs a few MB of the session's memory."""
PATIENCE = 15.0
"""Seconds in which a request must be complete."""
LONGEST_REQUEST = 64 * 1024
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_REASONS = {
    200: "OK", 204: "No Content", 304: "Not Modified", 400: "Bad Request", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable",
}  # fmt: skip


class Refused(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Desktop:
    """The page, and the WebSocket /vnc; `origin` is the only one whose pages may connect."""

    def __init__(self, page: bytes, vnc: str, origin: str) -> None:
        self._page = page
        self._tag = f'"{hashlib.sha256(page).hexdigest()[:32]}"'
        self._vnc = vnc
        self._origin = origin
        self._windows = 0

    async def serve(self, path: str) -> asyncio.Server:
        """Listen on a unix socket that only this user can open."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        umask = os.umask(0o177)
        try:
            return await asyncio.start_unix_server(self._handle, path, limit=LONGEST_REQUEST)
        finally:
            os.umask(umask)

    async def _handle(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                line, headers = await _read_request(reader)
            await self._answer(line, headers, reader, writer)
        except Refused as refused:
            writer.write(_response(refused.status, f"{refused}\n".encode()))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the browser has gone, or never sent a request
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(
        self, line: str, headers: Mapping[str, str], reader: StreamReader, writer: StreamWriter
    ) -> None:
        method, _, target = line.partition(" ")
        path = target.partition(" ")[0].partition("?")[0]
        if path == "/vnc":
            self._check_upgrade(method, headers)
            await self._connect(headers["sec-websocket-key"], reader, writer)
        elif method not in ("GET", "HEAD"):
            raise Refused(405, "Only GET is understood here.")
        elif path == "/used":
            # The page reports its use: a request counts as use, a WebSocket does not.
            writer.write(_response(204))
        elif path == "/":
            writer.write(self._page_for(headers, with_body=method == "GET"))
        else:
            raise Refused(404, "There is no such page here.")

    def _page_for(self, headers: Mapping[str, str], *, with_body: bool) -> bytes:
        is_cached = headers.get("if-none-match", "").removeprefix("W/") == self._tag
        page_headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Cache-Control": "no-cache",
            "ETag": self._tag,
            "Content-Security-Policy": POLICY,
        }
        return _response(304 if is_cached else 200, self._page, page_headers, with_body=with_body)

    def _check_upgrade(self, method: str, headers: Mapping[str, str]) -> None:
        if method != "GET" or headers.get("upgrade", "").lower() != "websocket":
            raise Refused(400, "This address is for WebSockets.")
        if not headers.get("sec-websocket-key"):
            raise Refused(400, "The header Sec-WebSocket-Key is missing.")
        if self._origin and headers.get("origin") != self._origin:
            raise Refused(403, "Only the desktop's own page may connect.")
        if self._windows >= WINDOWS:
            raise Refused(503, f"More than {WINDOWS} windows of this desktop are open; close some.")

    async def _connect(self, key: str, reader: StreamReader, writer: StreamWriter) -> None:
        self._windows += 1
        try:
            server = await asyncio.open_unix_connection(self._vnc)
        except OSError:
            self._windows -= 1
            raise Refused(503, "The X server does not answer.") from None
        try:
            writer.write(_upgrade(key))
            await _bridge(reader, writer, *server)
        finally:
            self._windows -= 1
            server[1].close()


async def _read_request(reader: StreamReader) -> tuple[str, dict[str, str]]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _response(
    status: int,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    with_body: bool = True,
) -> bytes:
    bodiless = status in (204, 304)
    fields = {"Content-Type": "text/plain; charset=utf-8"} | dict(headers or {})
    fields |= {"X-Content-Type-Options": "nosniff", "Connection": "close"}
    if not bodiless:
        fields["Content-Length"] = str(len(body))
    lines = [f"HTTP/1.1 {status} {_REASONS[status]}", *(f"{k}: {v}" for k, v in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if bodiless or not with_body else body)


def _upgrade(key: str) -> bytes:
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    return "\r\n".join([*lines, f"Sec-WebSocket-Accept: {websocket.accept(key)}", "", ""]).encode()


async def _bridge(
    browser: StreamReader, to_browser: StreamWriter, vnc: StreamReader, to_vnc: StreamWriter
) -> None:
    """Copy in both directions until either side ends."""
    tasks = [
        asyncio.ensure_future(_from_browser(browser, to_browser, to_vnc)),
        asyncio.ensure_future(_from_vnc(vnc, to_browser)),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _from_browser(browser: StreamReader, answers: StreamWriter, to_vnc: StreamWriter) -> None:
    messages = websocket.Messages(browser)
    while True:
        kind, data = await messages.next()
        if kind == BINARY:
            to_vnc.write(data)
            await to_vnc.drain()
        elif kind == PING:
            answers.write(websocket.frame(PONG, data))
        elif kind == CLOSE:
            answers.write(websocket.frame(CLOSE, data[:2]))
            return


async def _from_vnc(vnc: StreamReader, to_browser: StreamWriter) -> None:
    while data := await vnc.read(websocket.CHUNK):
        to_browser.write(websocket.frame(BINARY, data))
        await to_browser.drain()
    to_browser.write(websocket.frame(CLOSE, (1001).to_bytes(2, "big")))
