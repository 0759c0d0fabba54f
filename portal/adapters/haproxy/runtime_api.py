"""Words with HAProxy over its sockets (management guide, section 9), old processes included."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from portal.errors import Unavailable

_WORKER = re.compile(r"^(\d+)\s+worker\s", re.MULTILINE)
_PATIENCE = 3.0
"""Seconds that the master may need to start itself anew; a tenth of one is usual."""
_PAUSE = 0.02


class Haproxy:
    """The running HAProxy: one master, one worker, and older ones that still have streams."""

    def __init__(self, run_directory: str) -> None:
        self._worker = f"{run_directory}/haproxy.sock"
        self._master = f"{run_directory}/master.sock"

    def ask(self, *commands: str) -> str:
        """Send commands to the worker that takes new connections."""
        return _say(self._worker, ";".join(commands))

    def processes(self) -> Iterator[Process]:
        """All workers; those before the last reload live on until their streams end."""
        if not Path(self._master).exists():
            yield Process(self._worker, "")
            return
        for pid in _WORKER.findall(_say_to_master(self._master, "show proc")):
            yield Process(self._master, f"@!{pid} ")


class Process:
    """One worker."""

    def __init__(self, path: str, prefix: str) -> None:
        self._path = path
        self._prefix = prefix

    def ask(self, *commands: str) -> str:
        """Send commands; of one that has ended meanwhile the master says just that."""
        line = ";".join(self._prefix + command for command in commands)
        return _say_to_master(self._path, line) if self._prefix else _say(self._path, line)


def _say_to_master(path: str, line: str) -> str:
    """Say it until there is an answer: nothing that is said to the master does harm twice.

    After a start and after each reload the master runs its program anew. Until it listens again its
    socket refuses, and whoever was connected before hears nothing.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return _say(path, line)
        except Unavailable:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)


def _say(path: str, line: str) -> str:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5)
            connection.connect(path)
            connection.sendall(line.encode() + b"\n")
            # The master waits for more, unless it hears that there is none.
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
            if not answer:  # not even the empty line that ends each answer
                raise ConnectionError("HAProxy has hung up")
            return answer
    except OSError as error:
        raise Unavailable("The proxy in front of the apps does not answer.") from error
