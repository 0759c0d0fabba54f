"""Runs a container, and stands in for its program before Slurm: signals, exit code.

Slurm signals this process for the batch script or task, which begins only when the image is
mounted. Each signal is sent on once and at once, to those whom Slurm would have signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from portal.node.batch.child import ALL, is_for_program
from portal.node.batch.execute.launcher import Launcher
from portal.node.batch.execute.process import FAILED, Container
from portal.node.batch.execute.sentinel import Sentinel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BEGUN = 1.0
"""Seconds in which a shell reads what its script does at a signal; some it catches before that."""
SETTLED = 5.0
"""Seconds after which a program that handles a signal at all has said so."""
GRACE = 1.0
"""Seconds that a program has more than without a container, until it is signalled unprepared."""
STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
OPPOSITE: dict[int, tuple[int, ...]] = {
    signal.SIGCONT: STOPS,
    **dict.fromkeys(STOPS, (signal.SIGCONT,)),
}
"""Signals that wait no longer when another one comes, as in the kernel."""
_MERGED = (1 << (signal.SIGRTMIN - 1)) - 1
"""The mask of the signals of which the kernel keeps one only, until it is taken."""
PAUSE = 0.02
END = 30.0
"""Seconds that Apptainer may take to unmount the image."""


class Signal:
    """A signal that waits until the program has begun and expects it."""

    __slots__ = ("age", "number", "to_group")

    def __init__(self, number: int, age: float, *, to_group: bool) -> None:
        self.number = number
        self.age = age
        """The job's age when it came, which without a container were the program's."""
        self.to_group = to_group


class Supervisor:
    """Of one batch script or task; all signals must be blocked."""

    def __init__(self, *, is_batch: bool) -> None:
        self._terminal = os.isatty(0)  # whose signals reach the whole process group
        self._sentinel = Sentinel() if is_batch and not self._terminal else None
        self._job_begun = time.monotonic() - _age()
        self._queue: list[Signal] = []
        self._launcher: Launcher

    def launcher(self, environment: bytes, on_end: Callable[[], None]) -> str:
        """Await the launcher in the container, at the name that is returned."""
        self._launcher = Launcher(environment, on_end)
        return self._launcher.name

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        mask: set[int],
        *,
        on_fork: Callable[[], None],
        on_start: Callable[[str], None],
    ) -> int:
        """The program's exit code, or minus the signal that ended it.

        `on_fork` is called when threads may begin, `on_start` once the container is there, with
        the name by which other tasks can enter it, if they can.
        """
        container = Container(command, environment, mask, own_group=not self._terminal)
        on_fork()
        self._launcher.start()
        self._await(container, on_start)
        if self._sentinel:
            self._sentinel.stop()
        return self._code(container)

    def _await(self, container: Container, on_start: Callable[[str], None]) -> None:
        """Wait for the container's end."""
        launcher, was_here, until = self._launcher, False, float("inf")
        while container.code() is None and time.monotonic() < until:
            self._take(PAUSE if self._queue or launcher.status is not None else None)
            if launcher.was_here and not was_here:
                was_here = True
                on_start(launcher.instance)
            if launcher.status is not None:
                until = min(until, time.monotonic() + END)

    def _code(self, container: Container) -> int:
        if self._launcher.status is not None:
            return os.waitstatus_to_exitcode(self._launcher.status)
        code = container.code()
        # Without a launcher there was no container, whatever Apptainer's code is.
        return FAILED if code is None or (code >= 0 and not self._launcher.was_here) else code

    def _take(self, patience: float | None) -> None:
        """Take one signal, if need be wait for it, and send what is due."""
        if patience is None:
            taken: signal.struct_siginfo | None = signal.sigwaitinfo(ALL)
        else:
            taken = signal.sigtimedwait(ALL, patience)
        if taken is not None and is_for_program(taken):
            to_group = self._sentinel is not None and self._sentinel.has_got(taken.si_signo)
            opposite = OPPOSITE.get(taken.si_signo, ())
            self._queue = [queued for queued in self._queue if queued.number not in opposite]
            age = time.monotonic() - self._job_begun
            self._queue.append(Signal(taken.si_signo, age, to_group=to_group))
        if self._launcher.status is not None:
            self._queue = []  # nobody is left to get them
        elif self._launcher.script and self._queue:
            self._send_due()

    def _send_due(self) -> None:
        """Send the signals that are due."""
        script = self._launcher.script
        expected, pending = signals_of(script)  # the same for all: they keep their order
        remaining = []
        for queued in self._queue:
            bit = 1 << (queued.number - 1)
            if not self._is_due(queued, bool(expected & bit), bool(pending & bit)):
                remaining.append(queued)
                continue
            pending |= bit & _MERGED
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if queued.to_group else os.kill)(script, queued.number)
        self._queue = remaining

    def _is_due(self, queued: Signal, is_expected: bool, is_pending: bool) -> bool:
        age = time.monotonic() - self._launcher.begun_at
        if age < min(queued.age, BEGUN) or (is_pending and age < queued.age + SETTLED):
            return False
        return is_expected or age >= min(SETTLED, queued.age + GRACE)


def signals_of(process: int) -> tuple[int, int]:
    """The signals that a process catches, awaits or ignores, and those that it has yet to take.

    All and none if it has ended.
    """
    expected = -1 if _waits_for_signals(process) else 0
    pending = 0
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as stream:
            for line in stream:
                if line.startswith(("SigBlk:", "SigCgt:", "SigIgn:")):
                    expected |= int(line.split()[1], 16)
                elif line.startswith(("SigPnd:", "ShdPnd:")):
                    pending |= int(line.split()[1], 16) & _MERGED
    except OSError:
        return -1, 0
    return expected, pending


def _waits_for_signals(process: int) -> bool:
    """Whether it is in sigwait(3), during which the kernel does not show its signals as blocked."""
    try:
        with open(f"/proc/{process}/wchan", encoding="ascii", errors="replace") as stream:
            return stream.read().startswith("do_sigtimedwait")
    except OSError:
        return False


def _age() -> float:
    """Seconds since this process began, as the script of its job or the task of its step."""
    with open("/proc/self/stat", "rb") as stream:
        began = int(stream.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began
