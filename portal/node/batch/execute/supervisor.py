"""Run a container, and represent its program to Slurm: signals and exit code.

Slurm signals this process for the batch script or task, which begins only when the image is
mounted. Each signal is forwarded once and immediately, to the processes that Slurm means.
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

STARTUP = 1.0
"""Seconds in which a shell reads the traps of its script; some signals it catches before that."""
SETTLING = 5.0
"""Seconds after which a program has installed its signal handlers, if it has any."""
GRACE = 1.0
"""Extra seconds, for the container, before a program is signalled that does not expect it."""
STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
OPPOSITE: dict[int, tuple[int, ...]] = {
    signal.SIGCONT: STOPS,
    **dict.fromkeys(STOPS, (signal.SIGCONT,)),
}
"""Pending signals that another signal cancels, as in the kernel."""
_MERGED = (1 << (signal.SIGRTMIN - 1)) - 1
"""Mask of the standard signals, of which the kernel queues only one each."""
PAUSE = 0.02
END = 30.0
"""Seconds that Apptainer may take to unmount the image."""


class Signal:
    """A signal that waits until the program has begun and expects it."""

    __slots__ = ("age", "number", "to_group")

    def __init__(self, number: int, age: float, *, to_group: bool) -> None:
        self.number = number
        self.age = age
        """The job's age at its arrival, which without a container would be the program's."""
        self.to_group = to_group


class Supervisor:
    """Supervises one batch script or task; all signals must be blocked."""

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
        """Run the container; returns the program's exit code, or minus the signal that ended it.

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
        launcher, connected, deadline = self._launcher, False, float("inf")
        while container.code() is None and time.monotonic() < deadline:
            self._take(PAUSE if self._queue or launcher.status is not None else None)
            if launcher.connected and not connected:
                connected = True
                on_start(launcher.instance)
            if launcher.status is not None:
                deadline = min(deadline, time.monotonic() + END)

    def _code(self, container: Container) -> int:
        if self._launcher.status is not None:
            return os.waitstatus_to_exitcode(self._launcher.status)
        code = container.code()
        # Without a launcher there was no container, whatever Apptainer's code is.
        return FAILED if code is None or (code >= 0 and not self._launcher.connected) else code

    def _take(self, timeout: float | None) -> None:
        """Take one signal, waiting up to `timeout`, and send the signals that are due."""
        if timeout is None:
            info: signal.struct_siginfo | None = signal.sigwaitinfo(ALL)
        else:
            info = signal.sigtimedwait(ALL, timeout)
        if info is not None and is_for_program(info):
            to_group = self._sentinel is not None and self._sentinel.has_got(info.si_signo)
            opposite = OPPOSITE.get(info.si_signo, ())
            self._queue = [queued for queued in self._queue if queued.number not in opposite]
            age = time.monotonic() - self._job_begun
            self._queue.append(Signal(info.si_signo, age, to_group=to_group))
        if self._launcher.status is not None:
            self._queue = []  # the program has ended
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
        if age < min(queued.age, STARTUP) or (is_pending and age < queued.age + SETTLING):
            return False
        return is_expected or age >= min(SETTLING, queued.age + GRACE)


def signals_of(process: int) -> tuple[int, int]:
    """Return masks of the signals that a process catches, awaits or ignores, and of pending ones.

    All signals, and none, if it has ended.
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
