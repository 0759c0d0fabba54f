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

NAMESPACE = "/proc/self/ns/mnt"
"""What is the same for all tasks in one container, and for nobody else."""
SECONDS = 5.0
"""What cannot be killed, as in a hanging file system, is Slurm's matter after that."""
_PAUSE = 0.005
_PR_SET_CHILD_SUBREAPER = 36


class Leftovers:
    """Of a program that this process will start, or of all tasks that share this container."""

    def __init__(self, *, shared: bool = False) -> None:
        """`shared`: whether other tasks have the same container."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._lock = -1
        if shared:
            # Not a file of the image or the toolkit, which may be mounted once for all users.
            self._lock = os.open(NAMESPACE, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def wait(self, child: int) -> int:
        """The status of the child that is the program; orphans of it are waited for as well."""
        while True:
            found, status = os.waitpid(-1, 0)
            if found == child:
                return status

    def end(self) -> None:
        """End what is left, unless other tasks still run in this container.

        Whoever tries to lock the namespace loses what he had: the last one gets it.
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
        me, namespace = os.getpid(), os.readlink(NAMESPACE)
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
