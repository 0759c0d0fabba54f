"""Abstract sockets between the processes of one user, on one node and in the container.

They have no file that would stay when Slurm kills the job, nor a path that a container lacks.
"""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


def new_name() -> str:
    """A name that nobody can know before it is used."""
    return f"slipway-{os.urandom(8).hex()}"


def listen(name: str) -> socket.socket:
    """Listen at a name."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0{name}")
    listener.listen(128)
    return listener


def accept(listener: socket.socket) -> socket.socket:
    """The next connection by a process of the same user; raises OSError when nobody listens."""
    while True:
        connection, _ = listener.accept()
        if peer(connection)[1] == os.getuid():
            return connection
        connection.close()  # anybody on the node can connect


def peer(connection: socket.socket) -> tuple[int, int]:
    """The PID and the user's number of the program at the other end."""
    size = _CREDENTIALS.size
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return process, user
