"""Runs a program that gets this one's signals."""

from __future__ import annotations

import contextlib
import os
import signal

from portal.batch import real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FORWARDED = [
    number
    for number in signal.valid_signals()
    if number
    not in {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP, signal.SIGTTIN, signal.SIGTTOU}
    and number not in {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
]


def run(name: str, words: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command of Slurm's and return its exit code, 128 more than the signal that ended it."""
    path = real.find(name, environment)
    if not path:
        real.fail(name, f"Slurm's {name} was not found in PATH", real.NOT_FOUND)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        try:
            os.execve(path, [name, *words], environment)
        finally:
            os._exit(real.NOT_FOUND)
    forward(lambda number: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def forward(send: Callable[[int], None]) -> None:
    """Pass the signals of this process on; those of the terminal reach its whole group anyway."""

    def handle(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            send(number)

    for number in FORWARDED:
        if number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP) and os.isatty(0):
            signal.signal(number, signal.SIG_IGN)
        else:
            signal.signal(number, handle)
