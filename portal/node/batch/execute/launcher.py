"""The connection to the launcher in the container (node/runner/batch/command.py).

The launcher gets the script's environment byte for byte, since Apptainer has not seen it. It
reports the name by which other tasks can enter the container, the script's PID when it starts, and
its status when it ends, in lines such as "instance NAME", "began 1234", "ended 9".
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import threading
import time

from portal.node.batch.execute import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Launcher:
    """The launcher's reports; SIGCHLD to this process announces each of them."""

    def __init__(self, environment: bytes, on_end: Callable[[], None]) -> None:
        self.name = sockets.new_name()
        self.script = 0
        """The script's PID, 0 before it has begun."""
        self.begun_at = 0.0
        """When it began, on the monotonic clock."""
        self.status: int | None = None
        """The script's wait status, as from waitpid."""
        self.connected = False
        self.instance = ""
        """Apptainer's name for a container that other tasks can enter."""
        self._environment = environment
        self._on_end = on_end
        self._listener = sockets.listen(self.name)

    def start(self) -> None:
        """Listen in the background."""
        threading.Thread(target=self._serve, name="launcher", daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            with self._listener:
                connection = sockets.accept(self._listener)
            with connection, connection.makefile("rb") as lines:
                size = struct.pack("=I", len(self._environment))
                connection.sendall(size + self._environment)
                for line in lines:
                    self._take(line, connection)
                    _wake()

    def _take(self, line: bytes, connection: socket.socket) -> None:
        word, _, value = line.strip().partition(b" ")
        if word == b"instance":
            self.instance = os.fsdecode(value)
            self.connected = True
        elif word == b"began":
            self.begun_at = time.monotonic()
            self.script = int(value)
        elif word == b"ended":
            self.status = int(value)
            self._on_end()
            connection.sendall(b"\n")  # now it ends the remaining processes in the container


def _wake() -> None:
    """Wake the main thread."""
    os.kill(os.getpid(), signal.SIGCHLD)
