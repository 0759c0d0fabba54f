"""Users' file servers: started over SSH, queried over mutual TLS.

A server is its user's process: it may answer late, a byte at a time, endlessly, or never. A
request has one deadline, and users whose servers are slow are throttled. After a server has ended,
any process may get its port: a peer without the server's certificate is not the server, and causes
no throttling.
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

from portal.adapters.client_tls import ClientTls
from portal.adapters.ssh.per_user import ThreadBudget, ThrottleLimits, UserThrottle
from portal.adapters.ssh.transport import Transport
from portal.core.files.server import (
    CONTROL,
    FileReply,
    FileRequest,
    FileServer,
    NoReply,
    StartOrder,
)
from portal.core.interfaces.file_servers import FileServerHost
from portal.errors import Unavailable
from portal.node.common.json_text import NotJson, decode_object

SECONDS = 10.0
"""Deadline of a request, in seconds: connecting, TLS, and the whole response."""
CONNECT_SECONDS = 2.0
"""Deadline of connecting and TLS."""
START_SECONDS = 15.0
MOST = 4 * 1024 * 1024
"""Bytes of a response: a thousand entries with the longest names."""
EACH = ThrottleLimits(at_once=3, waiting=3, seconds=3.0)
"""Concurrent requests for one user from one process, which has `web.threads` for all."""
_BUSY = "Your files do not answer in time. Try again in {seconds} seconds."
_AWAY = "Your files do not answer. Try again in a minute; the file system may be away."
_ADDRESS = re.compile(r"[0-9a-fA-F.:]+")


class SshFileServers(FileServerHost):
    """File servers on the files host."""

    def __init__(
        self,
        transport: Transport,
        command: str,
        ca_directory: Path,
        budget: ThreadBudget | None = None,
    ) -> None:
        self._transport = transport
        self._command = command
        self._tls = ClientTls(ca_directory)
        self._users = UserThrottle(EACH, _BUSY, budget=budget)

    def start(self, owner: str, order: StartOrder) -> tuple[str, int]:
        answer = self._run(owner, order)
        if answer.get("running") == order.unless != "":
            raise Unavailable(_AWAY)
        address, port = answer.get("address"), answer.get("port")
        if not isinstance(address, str) or not isinstance(port, int):
            raise Unavailable("Your file server gave no answer when it started.")
        if not _ADDRESS.fullmatch(address) or not 0 < port < 65536:
            raise Unavailable("Your file server gave no usable address when it started.")
        return address, port

    def clean(self, owner: str, order: StartOrder) -> int:
        remaining = self._run(owner, order, "--clean").get("left")
        return remaining if isinstance(remaining, int) else 0

    def _run(self, owner: str, order: StartOrder, *options: str) -> dict[str, object]:
        values = asdict(order)
        if not order.fetch:  # hosts with an earlier version do not know it
            del values["fetch"]
        text = json.dumps(values).encode()
        argv = [self._command, "file-server", *options]
        result = self._transport.run(owner, argv, stdin=text, seconds=START_SECONDS)
        if result.code != 0:
            raise Unavailable(f"Your files cannot be read right now: {result.error_text()}")
        # Everything before the NUL is output of start-up files.
        try:
            return decode_object(result.stdout.rpartition(b"\0")[2])
        except NotJson:
            return {}

    def ask(self, server: FileServer, request: FileRequest) -> FileReply | NoReply:
        deadline = time.monotonic() + SECONDS
        with self._users.slot(server.owner):
            stream = self._reach(server)
            if isinstance(stream, NoReply):
                return stream
            try:
                with stream:
                    return _exchange(stream, server.name(CONTROL), request, deadline)
            except TimeoutError as error:
                self._users.penalize(server.owner)
                raise Unavailable(_AWAY) from error
            except NotJson as error:
                raise Unavailable("Your file server gave an answer that makes no sense.") from error
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise Unavailable("Your file server was cut off. Try again.") from error

    def _reach(self, server: FileServer) -> ssl.SSLSocket | NoReply:
        """Connect to the server; another process may have its port by now."""
        try:
            return self._connect(server, time.monotonic() + CONNECT_SECONDS)
        except (ConnectionRefusedError, ssl.SSLCertVerificationError):
            return NoReply.ENDED
        except (OSError, ValueError):
            # A server with too many connections hangs up, too.
            return NoReply.SILENT

    def _connect(self, server: FileServer, deadline: float) -> ssl.SSLSocket:
        address = server.address, server.port
        plain = socket.create_connection(address, _seconds_left(deadline))
        try:
            plain.settimeout(_seconds_left(deadline))
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
    stream.settimeout(_seconds_left(deadline))
    stream.sendall(head.encode("ascii") + body)
    answer = bytearray()
    while piece := _receive(stream, deadline):
        answer += piece
        if len(answer) > MOST:
            raise ValueError("too long a response")
    return _parse(bytes(answer))


def _receive(stream: ssl.SSLSocket, deadline: float) -> bytes:
    stream.settimeout(_seconds_left(deadline))
    return stream.recv(256 * 1024)


class _Bytes:
    """Bytes that http.client reads like a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> object:
        """Return the bytes as a file."""
        from io import BytesIO  # noqa: PLC0415

        return BytesIO(self._data)


def _parse(data: bytes) -> FileReply:
    response = http.client.HTTPResponse(_Bytes(data))  # type: ignore[arg-type]
    response.begin()
    text = response.read()
    return FileReply(response.status, decode_object(text) if text else {})


def _seconds_left(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining
