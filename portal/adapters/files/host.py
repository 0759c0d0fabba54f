"""Users' file servers: started over SSH, and asked over mutual TLS.

A server is its user's own process: it may answer late, a byte at a time, endlessly, or never. A
request has one deadline, and users who let requests wait are slowed down.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from portal.adapters.client_tls import ClientTls
from portal.adapters.ssh.per_user import ThrottleLimits, UserThrottle
from portal.adapters.ssh.transport import Transport
from portal.core.files.server import CONTROL, FileReply, FileRequest, FileServer, StartOrder
from portal.core.interfaces.files.servers import FileServerHost
from portal.errors import Unavailable

SECONDS = 10.0
"""Deadline of a request, in seconds: connecting, TLS, and the whole response."""
START_SECONDS = 15.0
MOST = 4 * 1024 * 1024
"""Bytes of a response: a thousand entries with the longest names."""
EACH = ThrottleLimits(at_once=4, waiting=6, seconds=3.0)
"""Concurrent requests for one user from one process; it has 20 threads."""
_BUSY = "Your files do not answer in time. Try again in {seconds} seconds."
_AWAY = "Your files do not answer. Try again in a minute; the file system may be away."
_ADDRESS = re.compile(r"[0-9a-fA-F.:]+")


class SshFileServers(FileServerHost):
    """File servers on the files host."""

    def __init__(self, transport: Transport, command: str, ca_directory: Path) -> None:
        self._transport = transport
        self._command = command
        self._tls = ClientTls(ca_directory)
        self._users = UserThrottle(EACH, _BUSY)

    def start(self, owner: str, order: StartOrder) -> tuple[str, int]:
        found = self._run(owner, order)
        try:
            address, port = str(found["address"]), int(found["port"])
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable("Your file server gave no answer when it started.") from error
        if not _ADDRESS.fullmatch(address) or not 0 < port < 65536:
            raise Unavailable("Your file server gave no usable address when it started.")
        return address, port

    def clean(self, owner: str, order: StartOrder) -> int:
        found = self._run(owner, order, "--clean").get("left")
        return found if isinstance(found, int) else 0

    def _run(self, owner: str, order: StartOrder, *options: str) -> dict[str, Any]:
        text = json.dumps(asdict(order)).encode()
        argv = [self._command, "file-server", *options]
        done = self._transport.run(owner, argv, stdin=text, seconds=START_SECONDS)
        if done.code != 0:
            raise Unavailable(f"Your files cannot be read right now: {done.error_text()}")
        # Everything before the NUL is output of start-up files.
        try:
            found = json.loads(done.stdout.rpartition(b"\0")[2])
        except ValueError:
            found = None
        return found if isinstance(found, dict) else {}

    def ask(self, server: FileServer, request: FileRequest) -> FileReply | None:
        deadline = time.monotonic() + SECONDS
        with self._users.slot(server.owner):
            connected = False
            try:
                with self._connect(server, deadline) as stream:
                    connected = True
                    return _exchange(stream, server.name(CONTROL), request, deadline)
            except TimeoutError as error:
                self._users.penalize(server.owner)
                raise Unavailable(_AWAY) from error
            except (OSError, ValueError, http.client.HTTPException) as error:
                if not connected:  # it has ended, and something else may have its port
                    return None
                raise Unavailable("Your file server was cut off. Try again.") from error

    def _connect(self, server: FileServer, deadline: float) -> ssl.SSLSocket:
        place = server.address, server.port
        plain = socket.create_connection(place, min(_left(deadline), 5.0))
        try:
            plain.settimeout(min(_left(deadline), 5.0))
            return self._tls.context().wrap_socket(plain, server_hostname=server.name(CONTROL))
        except BaseException:
            plain.close()
            raise


def _exchange(stream: ssl.SSLSocket, name: str, request: FileRequest, deadline: float) -> FileReply:
    body = b"" if request.body is None else json.dumps(request.body).encode()
    head = (
        f"{request.method} {request.path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    stream.settimeout(_left(deadline))
    stream.sendall(head.encode("ascii") + body)
    answer = bytearray()
    while piece := _receive(stream, deadline):
        answer += piece
        if len(answer) > MOST:
            raise ValueError("too long a response")
    return _parse(bytes(answer))


def _receive(stream: ssl.SSLSocket, deadline: float) -> bytes:
    stream.settimeout(_left(deadline))
    return stream.recv(256 * 1024)


class _Bytes:
    """Bytes in the place of a socket, for http.client."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> object:
        """A file of them."""
        from io import BytesIO  # noqa: PLC0415

        return BytesIO(self._data)


def _parse(data: bytes) -> FileReply:
    response = http.client.HTTPResponse(_Bytes(data))  # type: ignore[arg-type]
    response.begin()
    text = response.read()
    found = json.loads(text) if text else {}
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return FileReply(response.status, found)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
