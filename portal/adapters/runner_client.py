"""Client for the runners inside the jobs, through their gateways with the portal's certificate.

Runner, gateway and node are under the user's control: they may answer late, a byte at a time,
endlessly, or never. A call has one deadline, only the first line of its response is read, and a
session that does not respond is not called again for a while.
"""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path

from portal.adapters.client_tls import ClientTls
from portal.adapters.ssh.per_user import ThreadBudget, ThrottleLimits, UserThrottle
from portal.core.apps.access import gateway_name
from portal.core.interfaces.systems import Runners
from portal.core.session.session import Session
from portal.core.session_job.runner_protocol import StartRequest
from portal.errors import Unavailable

SECONDS = 5.0
"""Deadline of a call, in seconds: connecting, TLS, and the response."""
LONGEST_LINE = 1024
EACH = ThrottleLimits(at_once=1, waiting=1, seconds=1.0)
"""Concurrent calls to one session from one process."""
OWNERS = ThrottleLimits(at_once=2, waiting=1, seconds=1.0)
"""Concurrent calls to all sessions of one user."""
_BUSY = "The session does not answer in time. Try again in {seconds} seconds."
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r?\n")


class GatewayRunners(Runners):
    """Runners over mutual TLS."""

    def __init__(self, ca_directory: Path, budget: ThreadBudget | None = None) -> None:
        self._tls = ClientTls(ca_directory)
        self._sessions = UserThrottle(EACH, _BUSY)
        self._owners = UserThrottle(OWNERS, _BUSY, budget=budget)

    def start_app(self, session: Session, request: StartRequest) -> None:
        status = self._request(session, "PUT", f"/apps/{request['name']}", json.dumps(request))
        if status >= 300:
            raise Unavailable(f"The session answered {status} to the request to start an app.")

    def stop_app(self, session: Session, app: str) -> None:
        status = self._request(session, "DELETE", f"/apps/{app}", "")
        if status >= 300:
            raise Unavailable(f"The session answered {status} to the request to stop an app.")

    def _request(self, session: Session, method: str, path: str, body: str) -> int:
        if session.address is None or session.port is None:
            raise Unavailable("The session has not called back yet.")
        name = gateway_name("control", session.id)
        head = f"{method} {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n"
        data = body.encode()
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        address = session.address, session.port
        with self._owners.slot(session.owner), self._sessions.slot(session.id):
            try:
                return self._ask(address, name, head.encode() + data, time.monotonic() + SECONDS)
            except TimeoutError as error:
                self._sessions.penalize(session.id)
                raise Unavailable("The session does not answer in time.") from error
            except (OSError, _InvalidResponseError) as error:
                raise Unavailable("The session's compute node does not answer.") from error

    def _ask(self, address: tuple[str, int], name: str, message: bytes, deadline: float) -> int:
        with socket.create_connection(address, _seconds_left(deadline)) as plain:
            plain.settimeout(_seconds_left(deadline))
            with self._tls.context().wrap_socket(plain, server_hostname=name) as stream:
                stream.settimeout(_seconds_left(deadline))
                stream.sendall(message)
                line = b""
                while not line.endswith(b"\n"):
                    stream.settimeout(_seconds_left(deadline))
                    piece = stream.recv(LONGEST_LINE)
                    line = _first_line(line + piece)
                    if not piece or len(line) > LONGEST_LINE:
                        raise _InvalidResponseError
        match = _STATUS.fullmatch(line)
        if match is None:
            raise _InvalidResponseError
        return int(match[1])


class _InvalidResponseError(Exception):
    """The received data is not a valid HTTP response."""


def _first_line(data: bytes) -> bytes:
    return data[: end + 1] if (end := data.find(b"\n")) >= 0 else data


def _seconds_left(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def resolve(node: str) -> str:
    """Resolve a compute node's name to an IP address by the host's name service."""
    try:
        return str(socket.getaddrinfo(node, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise Unavailable(f"The compute node {node} has no address.") from error
