"""Connections to the login node that are used for several commands: how many, and for how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass

import paramiko

MOST_ON_HOST = 128
"""Connections of all processes of a portal host together, above which unused ones are closed."""
LEAST_OF_PROCESS = 6
"""The same of a process that is one of very many; its reader and its operator have one each."""
IDLE_SECONDS = 45.0
"""Seconds, up to a quarter more, for which an unused connection is kept."""


@dataclass
class Connection:
    """A user's connection, and how many commands use it."""

    user: str
    transport: paramiko.Transport
    host: str
    used: float = 0.0
    channels: int = 1
    retired: bool = False
    """Whether it takes no new commands; it is closed with its last channel."""


class ConnectionPool:
    """One connection for each user; unused ones are closed after a while, and when there are many.

    Those of `permanent` users stay. More than `most` only exist while all are in use.
    """

    def __init__(
        self, permanent: Collection[str], most: int = MOST_ON_HOST, idle: float = IDLE_SECONDS
    ) -> None:
        self._permanent = permanent
        self._most = most
        self._idle = idle
        self._connections: dict[str, Connection] = {}
        self._lock = threading.Lock()
        self._closer: threading.Thread | None = None

    def take(self, user: str) -> Connection | None:
        """Use the user's connection for one more command; None if there is none that works."""
        with self._lock:
            connection = self._connections.get(user)
            if connection is None or not connection.transport.is_active():
                return None
            connection.channels += 1
            return connection

    def add(self, user: str, transport: paramiko.Transport, host: str) -> Connection:
        """Use a new connection, in the place of the one that the user may have had."""
        connection = Connection(user, transport, host)
        with self._lock:
            replaced = self._connections.get(user)
            if replaced is not None:
                replaced.retired = True
            self._connections[user] = connection
            closing = self._take_unused()
            if replaced is not None and not replaced.channels:
                closing.append(replaced)
            self._start_closer()
        _close(closing)
        return connection

    def release(self, connection: Connection, retire: bool = False) -> None:
        """End one use of a connection; it gets no further one if it is to be retired."""
        with self._lock:
            connection.channels -= 1
            connection.used = time.monotonic()
            connection.retired |= retire
            if connection.retired and self._connections.get(connection.user) is connection:
                del self._connections[connection.user]
            closing = self._take_unused()
            if connection.retired and not connection.channels:
                closing.append(connection)
        _close(closing)

    def _take_unused(self) -> list[Connection]:
        """Remove connections unused for too long, and the least recently used above the bound."""
        unused = sorted(
            filter(self._is_unused, self._connections.values()),
            key=lambda connection: connection.used,
        )
        excess, limit = len(self._connections) - self._most, time.monotonic() - self._idle
        closing = [
            connection
            for index, connection in enumerate(unused)
            if index < excess or connection.used <= limit
        ]
        for connection in closing:
            del self._connections[connection.user]
        return closing

    def _is_unused(self, connection: Connection) -> bool:
        return not connection.channels and connection.user not in self._permanent

    def _start_closer(self) -> None:
        if self._closer is None and self._has_users():
            self._closer = threading.Thread(target=self._close_unused, name="ssh-idle", daemon=True)
            self._closer.start()

    def _close_unused(self) -> None:
        """Close what becomes unused, until no user has a connection."""
        goes_on = True
        while goes_on:
            time.sleep(self._idle / 4)
            with self._lock:
                closing = self._take_unused()
                if not self._has_users():
                    goes_on, self._closer = False, None
            _close(closing)

    def _has_users(self) -> bool:
        return any(user not in self._permanent for user in self._connections)


def _close(connections: Collection[Connection]) -> None:
    for connection in connections:
        connection.transport.close()
