"""The desktop's page, and the bridge between a WebSocket and the VNC server's socket."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from portal.node.runner.desktop import server
from portal.node.runner.desktop.server import Desktop
from tests.support.websockets import masked

ORIGIN = "https://label.apps.example.net"
UPGRADE = (
    f"GET /vnc HTTP/1.1\r\nHost: label.apps.example.net\r\nOrigin: {ORIGIN}\r\n"
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"RFB 003.008\n")
    while data := await reader.read(1000):
        writer.write(data.upper())
    writer.close()


def talk(directory: str, conversation: Talk, *, vnc: bool = True) -> None:
    """Connect to a desktop's socket, with a VNC server behind it that answers in capitals."""

    async def work() -> None:
        desktop = Desktop(b"<html>", f"{directory}/vnc", ORIGIN)
        behind = await asyncio.start_unix_server(_echo, f"{directory}/vnc") if vnc else None
        async with await desktop.serve(f"{directory}/app"):
            streams = await asyncio.open_unix_connection(f"{directory}/app")
            await asyncio.wait_for(conversation(*streams), 10)
            streams[1].close()
        if behind:
            behind.close()

    asyncio.run(work())


def ask(directory: str, request: str, *, vnc: bool = True) -> str:
    """The whole answer to a request."""
    found: list[str] = []

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request.encode())
        found.append((await reader.read()).decode())

    talk(directory, conversation, vnc=vnc)
    return found[0]


def test_the_page_is_served_with_a_policy_and_a_tag(directory: str) -> None:
    answer = ask(directory, "GET /?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert body == "<html>"
    assert "Content-Security-Policy: default-src 'none'" in head
    tag = next(line for line in head.split("\r\n") if line.startswith("ETag: "))[6:]
    known = ask(directory, f"GET / HTTP/1.1\r\nIf-None-Match: {tag}\r\n\r\n")
    assert known.startswith("HTTP/1.1 304 ")
    assert known.endswith("\r\n\r\n")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("HEAD / HTTP/1.1", 200),
        ("HEAD /used HTTP/1.1", 204),
        ("GET /used HTTP/1.1", 204),
        ("GET /etc/passwd HTTP/1.1", 404),
        ("GET /../share HTTP/1.1", 404),
        ("POST / HTTP/1.1", 405),
        ("GET /vnc HTTP/1.1", 400),
        ("nonsense", 405),
    ],
)
def test_every_request_gets_its_status(directory: str, request_line: str, status: int) -> None:
    answer = ask(directory, f"{request_line}\r\nHost: a\r\n\r\n")
    assert answer.split(" ", 2)[1] == str(status)


def test_a_window_talks_to_the_vnc_server(directory: str) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(UPGRADE.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
        assert await reader.readexactly(14) == b"\x82\x0cRFB 003.008\n"
        writer.write(masked(2, b"hello"))
        assert await reader.readexactly(7) == b"\x82\x05HELLO"
        writer.write(masked(9, b"ping"))
        assert await reader.readexactly(6) == b"\x8a\x04ping"
        writer.write(masked(8, b"\x03\xe8"))
        assert await reader.read() == b"\x88\x02\x03\xe8"

    talk(directory, conversation)


@pytest.mark.parametrize("origin", ["https://evil.example.org", ""])
def test_pages_of_other_origins_cannot_connect(directory: str, origin: str) -> None:
    line = f"Origin: {origin}\r\n" if origin else ""
    answer = ask(directory, UPGRADE.replace(f"Origin: {ORIGIN}\r\n", line))
    assert answer.startswith("HTTP/1.1 403 ")
    assert answer.endswith("Only the desktop's own page may connect.\n")


def test_windows_beyond_the_limit_are_told_so(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WINDOWS", 0)
    answer = ask(directory, UPGRADE)
    assert answer.startswith("HTTP/1.1 503 ")
    assert "close some" in answer


def test_a_missing_x_server_is_said(directory: str) -> None:
    answer = ask(directory, UPGRADE, vnc=False)
    assert answer.startswith("HTTP/1.1 503 ")
    assert answer.endswith("The X server does not answer.\n")


def test_an_unfinished_request_does_not_stay_open(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.1)
    assert ask(directory, "GET / HTTP/1.1\r\n") == ""


def test_nobody_else_can_open_the_socket(directory: str) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert stat.S_IMODE(Path(f"{directory}/app").stat().st_mode) == 0o600
        writer.close()

    talk(directory, conversation)
