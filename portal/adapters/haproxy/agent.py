"""Answers HAProxy's health checks: whether this portal host follows the database.

HAProxy's servers for apps track the check (templates/haproxy/portal.cfg.j2), so that it closes the
apps and cuts their connections by itself when the answer is no, late or missing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path

from portal.adapters.private_files import write
from portal.core.hosts import CHECK_TIMEOUT_SECONDS

OPEN = b"open\n"
SHUT = b"shut\n"


def socket_path(run_directory: str) -> str:
    """The path of the socket that HAProxy's checks connect to."""
    return f"{run_directory}/agent.sock"


def follows(run_directory: str) -> bool:
    """Whether this host's agent reports that it follows the database, by HAProxy's own check."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(CHECK_TIMEOUT_SECONDS)
            connection.connect(socket_path(run_directory))
            return connection.recv(len(OPEN)) == OPEN
    except OSError:
        return False


def machine_id(run_directory: str) -> str:
    """An id that tells machines with the same host name apart; it changes at a restart."""
    file = Path(run_directory) / "machine_id"
    with contextlib.suppress(FileNotFoundError):
        return file.read_text(encoding="ascii").strip()
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    write(draft, secrets.token_hex(16).encode())
    with contextlib.suppress(FileExistsError):  # another process was first
        os.link(draft, file)
    draft.unlink()
    return file.read_text(encoding="ascii").strip()


class AgentSocket:
    """A thread that answers each connection with one line."""

    def __init__(self, run_directory: str, is_open: Callable[[], bool]) -> None:
        path = Path(socket_path(run_directory))
        draft = path.with_name(f".agent{secrets.token_hex(2)}")  # paths of sockets are short

        class Answer(socketserver.BaseRequestHandler):
            """Handles one check."""

            def handle(self) -> None:
                """Send the answer without reading the request."""
                connection: socket.socket = self.request
                with contextlib.suppress(OSError):
                    connection.sendall(OPEN if is_open() else SHUT)

        previous_umask = os.umask(0o177)
        try:
            self._server = socketserver.UnixStreamServer(str(draft), Answer)
        finally:
            os.umask(previous_umask)

        draft.replace(path)  # atomically replaces a running or killed process's socket
        self._path, self._inode = path, path.stat().st_ino

    def is_replaced(self) -> bool:
        """Whether another process answers HAProxy's checks now."""
        with contextlib.suppress(OSError):
            return self._path.stat().st_ino != self._inode
        return True

    def start(self) -> None:
        """Start to answer checks."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Stop answering checks."""
        self._server.shutdown()
        self._server.server_close()
