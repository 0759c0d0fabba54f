"""Client for HAProxy's runtime API (management guide, section 9), including old workers."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from portal.errors import Unavailable

_WORKER = re.compile(r"^(\d+)\s+worker\s", re.MULTILINE)
_PATIENCE = 3.0
"""Seconds that the master may need to re-execute itself; usually 0.1."""
_PAUSE = 0.02


class Haproxy:
    """The running HAProxy: a master, a worker, and old workers that still have streams."""

    def __init__(self, run_directory: str) -> None:
        self._worker = f"{run_directory}/haproxy.sock"
        self._master = f"{run_directory}/master.sock"

    def ask(self, *commands: str) -> str:
        """Send commands to the worker that accepts new connections."""
        return _say(self._worker, ";".join(commands))

    def processes(self) -> Iterator[Process]:
        """All workers; those from before a reload run until their streams end."""
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
        """Send commands; for a worker that has exited the master reports that."""
        line = ";".join(self._prefix + command for command in commands)
        return _say_to_master(self._path, line) if self._prefix else _say(self._path, line)


def _say_to_master(path: str, line: str) -> str:
    """Send until there is an answer: all messages to the master are idempotent.

    After a start and after each reload the master re-executes itself. Until it listens again its
    socket refuses connections, and earlier connections get no answer.
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
            # The master waits for more input until the connection is half-closed.
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
            if not answer:  # not even the empty line at the end of each answer
                raise ConnectionError("HAProxy has hung up")
            return answer
    except OSError as error:
        raise Unavailable("The proxy in front of the apps does not answer.") from error
