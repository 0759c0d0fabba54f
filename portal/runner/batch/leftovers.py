"""Processes that a program leaves behind end before the image is unmounted, as Slurm ends them.

A loop in the background would fail at each of its commands, thousands of times, until then.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import time

SECONDS = 5.0
"""What cannot be killed, as in a hanging file system, is Slurm's matter after that."""
_PAUSE = 0.005
_PR_SET_CHILD_SUBREAPER = 36


class Leftovers:
    """Of a program that this process will start, or of all tasks that share this container."""

    def __init__(self, shared_file: str = "") -> None:
        """`shared_file`: a file of the container's if other tasks have the same one."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._lock = -1
        if shared_file:
            self._lock = os.open(shared_file, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def wait(self, child: int) -> int:
        """The status of the child that is the program; orphans of it are waited for as well."""
        while True:
            found, status = os.waitpid(-1, 0)
            if found == child:
                return status

    def end(self) -> None:
        """End what is left, unless other tasks still run in this container.

        Whoever tries to lock the file loses what he had: the last one gets it.
        """
        if self._lock >= 0:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
        elif not self._reap():
            return
        until = time.monotonic() + SECONDS
        while (found := self._left()) and time.monotonic() < until:
            for process in found:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            self._reap()
            time.sleep(_PAUSE)

    def _reap(self) -> bool:
        """Take note of children that have ended; whether there are others."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        return True

    def _left(self) -> list[int]:
        """Our children, to which orphans come; in a shared container also those of other tasks."""
        me, namespace = os.getpid(), os.readlink("/proc/self/ns/mnt")
        apptainer = os.getppid()
        found = []
        for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError, IndexError):
                is_ours = _parent(process) == me
                if not is_ours and self._lock >= 0:
                    is_ours = os.readlink(f"/proc/{process}/ns/mnt") == namespace
                if is_ours and process not in (me, apptainer):
                    found.append(process)
        return found


def _parent(process: int) -> int:
    with open(f"/proc/{process}/stat", "rb") as stream:
        return int(stream.read().rpartition(b")")[2].split()[1])
