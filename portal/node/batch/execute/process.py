"""Apptainer's process."""

from __future__ import annotations

import os
import signal

from portal.node.batch import real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

FAILED = 70
"""Exit code if the container could not be started (sysexits.h: EX_SOFTWARE)."""


class Container:
    """A container that was started."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        mask: set[int],
        *,
        own_group: bool = True,
    ) -> None:
        """`mask`: the signals that Slurm has blocked. `own_group`: whether it has no terminal.

        No other thread may run yet: one that has Python's lock would hold it for ever in the copy.
        """
        self._code: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            _become(command, environment, mask, own_group=own_group)

    def code(self) -> int | None:
        """Its exit code, or minus a signal; None while it runs."""
        if self._code is None:
            ended, status = os.waitpid(self._pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code


def _become(
    command: Sequence[str], environment: Mapping[str, str], mask: set[int], *, own_group: bool
) -> NoReturn:
    try:
        if own_group:
            os.setpgid(0, 0)
        real.default_signals()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execve(command[0], list(command), dict(environment))
    except OSError as error:
        os.write(2, os.fsencode(f"Slipway: {command[0]}: {error.strerror}\n"))
    finally:
        os._exit(FAILED)
