"""Client for HAProxy's runtime API (management guide, section 9), including old workers."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from portal.errors import Unavailable

_WORKER = re.compile(r"^(\d+)\s+worker\s", re.MULTILINE)
_PATIENCE = 3.0
"""Seconds that the master may need to re-execute itself; usually 0.1."""
_PAUSE = 0.02
_SECONDS = 5.0
_RELOAD_SECONDS = 30.0
_FAILED = re.compile(r"\[failed: (\d+)\]")
_SILENT = "The proxy in front of the apps does not answer."


class Haproxy:
    """The running HAProxy: a master, the current worker, and old workers with open streams."""

    def __init__(self, run_directory: str) -> None:
        self._worker = f"{run_directory}/haproxy.sock"
        self._master = f"{run_directory}/master.sock"

    def ask(self, *commands: str) -> str:
        """Send commands to the worker that accepts new connections."""
        return _send(self._worker, ";".join(commands))

    def processes(self) -> Iterator[Process]:
        """All workers; those from before a reload run until their streams end."""
        if not Path(self._master).exists():
            yield Process(self._worker, "")
            return
        for pid in _WORKER.findall(_send_to_master(self._master, "show proc")):
            yield Process(self._master, f"@!{pid} ")

    def newest(self) -> Process:
        """The worker that accepts new connections."""
        for process in self.processes():
            return process
        raise Unavailable(_SILENT)

    def reload(self) -> None:
        """Make a new worker read the configuration; returns when it serves. Raises Unavailable.

        The caller holds the lock of the map files (map_files.py). After a failure the previous
        worker continues to serve.
        """
        previous = _send_to_master(self._master, "show proc")
        with contextlib.suppress(ConnectionError):
            # Before 2.7 the master hangs up without a reply; later versions reply at the end.
            reply = _send_once(self._master, "reload", _RELOAD_SECONDS)
            if reply.startswith("Success=0"):
                raise Unavailable(f"HAProxy has refused its configuration: {_alerts(reply)}")
        deadline = time.monotonic() + _RELOAD_SECONDS
        while time.monotonic() < deadline:
            current = _send_to_master(self._master, "show proc")
            if _WORKER.findall(current)[:1] not in ([], _WORKER.findall(previous)[:1]):
                return
            if _FAILED.findall(current) != _FAILED.findall(previous):
                raise Unavailable("HAProxy has refused its configuration; its log says why.")
            time.sleep(_PAUSE)
        raise Unavailable("HAProxy has no new process yet; its log says why.")


@dataclass(frozen=True)
class Process:
    """A worker process."""

    path: str
    prefix: str

    def ask(self, *commands: str) -> str:
        """Send commands; if the worker has exited, the master's reply says so."""
        line = ";".join(self.prefix + command for command in commands)
        return _send_to_master(self.path, line) if self.prefix else _send(self.path, line)


def _send_to_master(path: str, line: str) -> str:
    """Send until there is an answer: all messages to the master are idempotent.

    After a start and after each reload the master re-executes itself. Until it listens again its
    socket refuses connections, and earlier connections get no answer.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return _send(path, line)
        except Unavailable:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)


def _send(path: str, line: str) -> str:
    try:
        return _send_once(path, line, _SECONDS)
    except OSError as error:
        raise Unavailable(_SILENT) from error


def _send_once(path: str, line: str, seconds: float) -> str:
    """Send a line and return the answer; raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(line.encode() + b"\n")
        # The master waits for more input until the connection is half-closed.
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        if not answer:  # not even the empty line at the end of each answer
            raise ConnectionError("HAProxy has hung up")
        return answer


def _alerts(reply: str) -> str:
    alerts = [line.strip() for line in reply.splitlines() if "[ALERT]" in line]
    return "; ".join(alerts[:3]) or "its log says why"
