"""End the processes that a program leaves behind before the image is unmounted, as Slurm does.

Otherwise a loop in the background would fail at each of its commands, thousands of times.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import time

NAMESPACE = "/proc/self/ns/mnt"
"""The same file for all tasks in one container, and for no other process."""
SECONDS = 5.0
"""Seconds after which processes that cannot be killed are left to Slurm."""
_PAUSE = 0.005
_PR_SET_CHILD_SUBREAPER = 36


class Leftovers:
    """Leftovers of a program of this process, or of all tasks that share this container."""

    def __init__(self, *, shared: bool = False) -> None:
        """`shared`: whether other tasks have the same container."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._lock = -1
        if shared:
            # Not a file of the image or the toolkit, which may be mounted once for all users.
            self._lock = os.open(NAMESPACE, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def wait(self, child: int) -> int:
        """Wait for the program; returns its wait status. Its orphans are reaped as well."""
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == child:
                return status

    def end(self) -> None:
        """Kill remaining processes, unless other tasks still run in this container.

        A task that fails to get the exclusive lock loses its shared one, so the last task gets it.
        """
        if self._lock >= 0:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
        elif not self._reap():
            return
        deadline = time.monotonic() + SECONDS
        while (remaining := self._left()) and time.monotonic() < deadline:
            for process in remaining:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            self._reap()
            time.sleep(_PAUSE)

    def _reap(self) -> bool:
        """Reap children that have ended; returns whether there are others."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        return True

    def _left(self) -> list[int]:
        """List our children, with adopted orphans; in a shared container also other tasks' ones."""
        me, namespace = os.getpid(), os.readlink(NAMESPACE)
        apptainer = os.getppid()
        processes = []
        for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError, IndexError):
                is_ours = _parent(process) == me
                if not is_ours and self._lock >= 0:
                    is_ours = os.readlink(f"/proc/{process}/ns/mnt") == namespace
                if is_ours and process not in (me, apptainer):
                    processes.append(process)
        return processes


def _parent(process: int) -> int:
    with open(f"/proc/{process}/stat", "rb") as stream:
        return int(stream.read().rpartition(b")")[2].split()[1])
