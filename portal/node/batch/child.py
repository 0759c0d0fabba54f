"""Run a program and forward this process's signals to it, each once and immediately.

They are blocked before the program starts, and then awaited one by one: a Python handler would
interrupt this process anywhere, and would be delayed while it waits in the kernel.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from portal.node.batch import real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

ALL = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
BY_KERNEL = 0x80
"""SI_KERNEL of siginfo.h, the code of signals that a terminal sends to a whole process group."""
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH)


def run(name: str, words: Sequence[str], environment: dict[str, str]) -> int:
    """Run a Slurm command and return its exit code, or minus the signal that ended it."""
    path = real.find(name, environment)
    if not path:
        real.fail(name, f"Slurm's {name} was not found in PATH", real.NOT_FOUND)
    notice_children()
    # Ctrl-Z has to stop this process as well, or its shell would wait for it.
    awaited = ALL - {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _become(path, [name, *words], environment)
    return _wait(child, awaited)


def notice_children() -> None:
    """Restore SIGCHLD's default, or children have no status if the caller ignored it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _wait(child: int, awaited: Iterable[int]) -> int:
    """Wait for a child; returns its exit code, or minus the signal that ended it."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        info = signal.sigwaitinfo(awaited)
        if is_for_program(info):
            os.kill(child, info.si_signo)


def is_for_program(info: signal.struct_siginfo) -> bool:
    """Whether to forward a signal, since its sender did not send it to the program as well."""
    if info.si_signo in _OF_TERMINALS and info.si_code == BY_KERNEL:
        return False
    if info.si_signo == signal.SIGCHLD and info.si_code > 0:
        return False  # of a child, not of kill(2)
    return info.si_pid != os.getpid()  # SIGPIPE


def _become(path: str, words: list[str], environment: dict[str, str]) -> NoReturn:
    """In the child: execute the command. It must never return to the code of the parent."""
    try:
        real.default_signals()
        os.execve(path, words, environment)
    except OSError as error:
        os.write(2, os.fsencode(f"{words[0]}: error: {path}: {error.strerror}\n"))
    finally:
        os._exit(real.NOT_FOUND)


def end(code: int) -> NoReturn:
    """End as the child did: by the same signal, if one ended it."""
    if code < 0:
        import resource  # noqa: PLC0415 - seldom needed

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # there is the program's own
        with contextlib.suppress(OSError):  # SIGKILL cannot be handled
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
    sys.exit(code if code >= 0 else 128 - code)
