"""Apptainer's process."""

from __future__ import annotations

import os
import signal

from portal.batch import real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

FAILED = 70
"""Exit code if the container could not be started (sysexits.h: EX_SOFTWARE)."""
_CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220, "ppc64le": 120}
"""The number of clone(2), of which the C library has no version without a stack."""
_CLONE_PARENT = 0x8000


class Container:
    """A container that was started."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        mask: set[int],
        *,
        shared: bool = False,
        own_group: bool = True,
    ) -> None:
        """`mask`: the signals that Slurm has blocked. `own_group`: whether it has no terminal.

        With `shared` it becomes a child of slurmstepd: tasks enter the container of the first one
        that has the same parent (Apptainer's --sharens). Slurm signals it, therefore. Nothing is
        blocked: Apptainer's starter replaces the mask, and what had waited would end it there.
        No other thread may run yet: one that has Python's lock would hold it for ever in the copy.
        """
        self._is_child = not shared
        self._code: int | None = None
        self._pid = _clone_sibling() if shared else os.fork()
        if self._pid == 0:
            mask = set() if shared else mask
            _become(command, environment, mask, own_group=own_group, shared=shared)
        if self._pid < 0:  # an unknown architecture
            _become(command, environment, set(), own_group=False, shared=True)

    def code(self) -> int | None:
        """Its exit code, or minus a signal; None while it runs. A sibling's is always FAILED."""
        if self._code is None:
            if self._is_child:
                found, status = os.waitpid(self._pid, os.WNOHANG)
                self._code = os.waitstatus_to_exitcode(status) if found else None
            elif not _runs(self._pid):
                self._code = FAILED
        return self._code


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    mask: set[int],
    *,
    own_group: bool,
    shared: bool,
) -> NoReturn:
    try:
        if own_group:
            os.setpgid(0, 0)
        real.default_signals()
        for number in (signal.SIGINT, signal.SIGHUP):
            # Of those that Go dies of by itself, the two that a program can tell it to ignore.
            signal.signal(number, signal.SIG_IGN if shared else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execve(command[0], list(command), dict(environment))
    except OSError as error:
        os.write(2, os.fsencode(f"Slipway: {command[0]}: {error.strerror}\n"))
    finally:
        os._exit(FAILED)


def _clone_sibling() -> int:
    """As fork, but the parent of the new process is that of this one; -1 if it cannot be done."""
    import ctypes  # noqa: PLC0415 - it takes a batch script 4 ms

    number = _CLONE.get(os.uname().machine, -1)
    if number < 0:
        return -1
    return int(ctypes.CDLL(None).syscall(number, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))


def _runs(process: int) -> bool:
    """Whether a process has threads; the first of them ends before the others do."""
    try:
        with open(f"/proc/{process}/stat", "rb") as stream:
            values = stream.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return values[0] not in (b"Z", b"X") or int(values[17]) > 1
