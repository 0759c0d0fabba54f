"""Detect whether Slurm signalled the job's whole process group, or its first process alone.

`scancel --full` signals the group, `scancel --batch` and `sbatch --signal=B:` the script alone. The
script has its own process group, since it cannot lead Slurm's. So an idle process stays in Slurm's
group: a signal that it gets was sent to the whole group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from portal.node.batch.child import ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PATIENCE = 1.0
"""Timeout of an answer, which usually takes microseconds."""
MOST = 256
"""Signals in one answer; 64 kinds exist, and few are pending more than once."""


class Sentinel:
    """A process in the group of this one, which must have blocked all signals."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = os.fork()
        if self._process == 0:
            self._socket.close()
            _report(other)
        other.close()
        self._socket.settimeout(PATIENCE)
        self._got: dict[int, int] = {}

    def has_got(self, number: int) -> bool:
        """Whether it got this signal as well; to be called once for each signal of this process.

        The kernel signals the youngest process of a group first, so before its parent.
        """
        with contextlib.suppress(OSError):  # it was killed, or stopped with its group
            self._socket.send(b"?")
            for received in self._socket.recv(MOST):  # real-time signals do not merge
                self._got[received] = (
                    self._got.get(received, 0) + 1 if received >= signal.SIGRTMIN else 1
                )
        count = self._got.get(number, 0)
        self._got[number] = max(0, count - 1)
        return count > 0

    def stop(self) -> None:
        """End it, even if it is stopped."""
        self._socket.close()
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


def _report(connection: socket.socket) -> NoReturn:
    try:
        while connection.recv(1):
            taken: list[int] = []
            while len(taken) < MOST:
                info = signal.sigtimedwait(ALL, 0)
                if info is None:
                    break
                taken.append(info.si_signo)
            connection.send(bytes(taken) or b"\0")
    finally:
        os._exit(0)
