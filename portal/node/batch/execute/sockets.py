"""Abstract sockets between the processes of one user, on one node and in the container.

They have no file that would stay when Slurm kills the job, nor a path that a container lacks.
"""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


def new_name() -> str:
    """Return a random name, which cannot be guessed."""
    return f"slipway-{os.urandom(8).hex()}"


def listen(name: str) -> socket.socket:
    """Listen at a name."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0{name}")
    listener.listen(128)
    return listener


def accept(listener: socket.socket) -> socket.socket:
    """Accept a connection of the same user; raises OSError when the listener is closed."""
    while True:
        connection, _ = listener.accept()
        if peer(connection)[1] == os.getuid():
            return connection
        connection.close()  # any user of the node can connect


def peer(connection: socket.socket) -> tuple[int, int]:
    """Return the PID and UID of the peer."""
    size = _CREDENTIALS.size
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    process, user, _ = _CREDENTIALS.unpack(credentials)
    return process, user
