"""A small HTTP/1.1 client for thousands of connections in one process."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode

LONGEST = 90.0
"""Seconds after which a client gives an answer up."""
NOTHING = 0
"""Status of a request that got no answer."""
BODYLESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


@dataclass(frozen=True)
class Answer:
    """A response; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def refused(self) -> bool:
        """Whether the portal was too busy."""
        return self.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)

    @property
    def pause(self) -> float:
        """The seconds that a refusal asks to wait; 0 without any."""
        later = self.headers.get("retry-after", "")
        return float(later) if later.isdecimal() else 0.0


@dataclass(frozen=True)
class Portal:
    """Where a client connects to, and the name it uses."""

    port: int
    host: str
    origin: str
    context: ssl.SSLContext | None

    async def connect(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection from this address."""
        name = self.host.partition(":")[0] if self.context else None
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.context, server_hostname=name, local_addr=(address, 0)
        )


class Client:
    """One connection from an address of its own, kept open between requests, with cookies."""

    def __init__(self, portal: Portal, address: str, cookies: dict[str, str] | None = None) -> None:
        self._portal = portal
        self._address = address
        self.cookies = cookies if cookies is not None else {}
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str, **headers: str) -> Answer:
        """Load a page."""
        return await self.send("GET", path, "", headers)

    async def post(self, path: str, fields: list[tuple[str, str]], **headers: str) -> Answer:
        """Send a form, as a page of the portal does."""
        headers["Content_Type"] = "application/x-www-form-urlencoded"
        headers["Origin"] = self._portal.origin
        headers["Referer"] = self._portal.origin + path
        return await self.send("POST", path, urlencode(fields), headers)

    async def send(self, method: str, path: str, body: str, headers: dict[str, str]) -> Answer:
        """Send a request; once more if a kept connection turns out to be closed."""
        request = self._request(method, path, body, headers)
        for fresh in (self._stream is None, True):
            try:
                return await asyncio.wait_for(self._exchange(request), LONGEST)
            except (OSError, EOFError, ssl.SSLError, asyncio.IncompleteReadError):
                self.close()
                if fresh:
                    break
            except TimeoutError:
                self.close()
                break
        return Answer(NOTHING, {}, "")

    def close(self) -> None:
        """Close the connection in the next round of the event loop, without TLS's farewell."""
        if self._stream is not None:
            self._stream[1].transport.abort()
            self._stream = None

    def _request(self, method: str, path: str, body: str, headers: dict[str, str]) -> bytes:
        data = body.encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._portal.host}"]
        if self.cookies:
            jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            lines.append(f"Cookie: {jar}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if method != "GET":
            lines.append(f"Content-Length: {len(data)}")
        return "\r\n".join([*lines, "", ""]).encode() + data

    async def _exchange(self, request: bytes) -> Answer:
        if self._stream is None:
            self._stream = await self._portal.connect(self._address)
        reader, writer = self._stream
        writer.write(request)
        answer = await _read(reader)
        for name, value in re.findall(
            r"^([^=;\s]+)=([^;]*)", answer.headers.get("set-cookie", ""), re.M
        ):
            self.cookies[name] = value
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer


async def _read(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split()[1])
    headers: dict[str, str] = {}
    for line in filter(None, head[1:]):
        name, _, value = line.partition(":")
        name = name.lower()
        headers[name] = "\n".join(filter(None, [headers.get(name, ""), value.strip()]))
    if status in BODYLESS:
        return Answer(status, headers, "")
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join([chunk async for chunk in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Answer(status, headers, body.decode(errors="replace"))


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
