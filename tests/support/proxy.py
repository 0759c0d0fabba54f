"""HAProxy's processes and WebSockets on a running cluster."""

from __future__ import annotations

import re
import time

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.support.client import TIMEOUT
from tests.support.cluster import Cluster, wait_for


def responsive(sockets: list[ClientConnection]) -> int:
    """The number of responsive WebSockets."""
    waiting = []
    for socket in sockets:
        try:
            waiting.append(socket.ping())
        except ConnectionClosed:
            continue
    until = time.monotonic() + TIMEOUT
    return sum(pong.wait(max(until - time.monotonic(), 0)) for pong in waiting)


def socket_command(socket: str, words: str) -> str:
    """A shell command that sends a command to one of HAProxy's sockets."""
    return f"echo '{words}' | nc -N -U /run/slipway/{socket}.sock"


def haproxy_workers(cluster: Cluster, host: str = "portal") -> list[str]:
    """HAProxy's processes that have streams, newest first."""

    def processes() -> str | None:
        # The master's socket refuses connections while it re-executes itself.
        return cluster.shell(host, socket_command("master", "show proc"), check=False) or None

    return re.findall(r"^(\d+)\s+worker", wait_for("HAProxy's master", processes), re.MULTILINE)
