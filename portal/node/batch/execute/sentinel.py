"""Tells whether Slurm has signalled the job's whole process group, or its first process alone.

`scancel --full` signals the group, `scancel --batch` and `sbatch --signal=B:` the script alone. The
script is not in Slurm's group, which it cannot lead, but in one of its own. So a process that does
nothing stays in Slurm's: what it gets was sent to all of them.
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
"""Seconds for an answer, which takes it microseconds."""
MOST = 256
"""Signals in one answer; 64 kinds exist, and few wait more than once."""


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
        """Whether it got this signal as well, which is asked once for each that this process gets.

        The kernel signals the youngest process of a group first: it got it before its parent did.
        """
        with contextlib.suppress(OSError):  # somebody has killed it, or stopped it with its group
            self._socket.send(b"?")
            for got in self._socket.recv(MOST):  # those of real time do not merge
                self._got[got] = self._got.get(got, 0) + 1 if got >= signal.SIGRTMIN else 1
        found = self._got.get(number, 0)
        self._got[number] = max(0, found - 1)
        return found > 0

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
