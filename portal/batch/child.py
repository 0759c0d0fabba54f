"""Runs a program that gets this one's signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from portal.batch import real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import NoReturn

_OF_THIS_PROCESS = {
    signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP, signal.SIGTTIN, signal.SIGTTOU,
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT,
    signal.SIGPIPE,  # of an answer to a program that is gone: the script must not be ended for it
}  # fmt: skip
FORWARDED = signal.valid_signals() - _OF_THIS_PROCESS


def run(name: str, words: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command of Slurm's and return its exit code, or minus the signal that ended it."""
    path = real.find(name, environment)
    if not path:
        real.fail(name, f"Slurm's {name} was not found in PATH", real.NOT_FOUND)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        _become(path, [name, *words], environment)
    # Ctrl-Z has to stop this process as well, or its shell would wait for it.
    forward(lambda number: os.kill(child, number), FORWARDED - {signal.SIGTSTP})
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _become(path: str, words: list[str], environment: dict[str, str]) -> NoReturn:
    """In the child: execute the command. It must never return to the code of the parent."""
    try:
        real.default_signals()
        os.execve(path, words, environment)
    except OSError as error:
        os.write(2, os.fsencode(f"{words[0]}: error: {path}: {error.strerror}\n"))
    finally:
        os._exit(real.NOT_FOUND)


def forward(send: Callable[[int], None], numbers: Iterable[int]) -> None:
    """Pass signals of this process on; those of the terminal reach its whole group anyway."""

    def handle(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            send(number)

    for number in numbers:
        if number in (signal.SIGINT, signal.SIGQUIT) and os.isatty(0):
            signal.signal(number, signal.SIG_IGN)
        else:
            signal.signal(number, handle)


def end(code: int) -> NoReturn:
    """End as the child did: by the same signal, if one ended it."""
    if code < 0:
        with contextlib.suppress(OSError):  # nobody can handle SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code if code >= 0 else 128 - code)
