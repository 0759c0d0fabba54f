"""gunicorn's processes, for the portal's other commands: their ids, and which are ready.

gunicorn does not report when a worker has loaded the application, so each worker creates an empty
file with its process id as the name.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path

from portal.errors import Unavailable

SOCKET = "portal.sock"
_FOLDER = "web"
_PROC = Path("/proc")
_SECONDS = 5.0


def announce(run: Path) -> None:
    """Report that this process has loaded the application; a failure is ignored."""
    folder = run / _FOLDER
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        for file in folder.iterdir():
            if not (_PROC / file.name).exists():
                file.unlink(missing_ok=True)
        own_file = folder / str(os.getpid())
        own_file.unlink(missing_ok=True)  # of an earlier process with this id
        own_file.touch(mode=0o600)


class Gunicorn:
    """The running gunicorn processes."""

    def __init__(self, run: Path) -> None:
        self._run = run

    def first(self) -> int:
        """The id of the listening process; raises Unavailable if there is none."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_SECONDS)
            try:
                connection.connect(str(self._run / SOCKET))
                credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            except OSError as error:
                raise Unavailable(f"gunicorn does not listen: {error.strerror}") from error
        pid: int = struct.unpack("3i", credentials)[0]
        if not pid:
            raise Unavailable("gunicorn runs outside of this container.")
        return pid

    def workers(self, first: int) -> set[int]:
        """The ids of its workers, including those that are starting or ending."""
        return {
            pid for pid in map(int, filter(str.isdigit, os.listdir(_PROC))) if _parent(pid) == first
        }

    def ready(self, pids: set[int]) -> set[int]:
        """The processes that have loaded the application."""
        return {pid for pid in pids if (self._run / _FOLDER / str(pid)).exists()}

    def configured_workers(self, first: int) -> int | None:
        """The number of workers in its arguments; None if they do not contain it."""
        try:
            words = (_PROC / str(first) / "cmdline").read_bytes().split(b"\0")
            return int(words[words.index(b"--workers") + 1])
        except (OSError, ValueError, IndexError):
            return None


def identity(pid: int) -> str:
    """A process's id with its start time, since ids are reused; "" if it has ended."""
    fields = _stat(pid)
    return f"{pid} {fields[19]}" if fields else ""


def _parent(pid: int) -> int:
    """The parent of a running process; 0 if it has ended."""
    fields = _stat(pid)
    return int(fields[1]) if fields and fields[0] != "Z" else 0


def _stat(pid: int) -> list[str]:
    """The fields of proc(5)'s stat from the state on; [] if there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # after the name, which may contain any character
