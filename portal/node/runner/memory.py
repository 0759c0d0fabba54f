"""Names the processes that the kernel kills when the job needs more memory than it has."""

from __future__ import annotations

import os
import threading
import time

from .log import say
from .usage import CGROUP, read_memory_limit, read_oom_kills

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    ProcessTable = dict[tuple[str, str], tuple[str, int]]

# Seconds between two polls, which take about 20 microseconds for each process.
PAUSE = 1.0
LONGEST_NAME = 64
ATTEMPTS = 20
KERNELS = (b"ipykernel", b"/jupyter/kernel.py")


class MemoryWatch:
    """Remembers names and sizes of all processes, since the kernel only counts the kills.

    The process that vanished while the counter rose is named; of several, the largest.
    """

    def __init__(
        self, killed: Callable[[str], None], root: str = CGROUP, proc: str = "/proc"
    ) -> None:
        self._killed = killed
        self._root = root
        self._proc = proc
        self._kills = read_oom_kills(root) or 0
        self._last: ProcessTable = {}
        self._previous: ProcessTable = {}
        self._names: dict[tuple[str, str], tuple[str, str]] = {}
        self._program = ""
        self._at: float | None = None

    def start(self) -> None:
        """Watch in the background until the runner exits."""
        threading.Thread(target=self._run, name="memory", daemon=True).start()

    def report(self) -> dict[str, object]:
        """The last kill, for the heartbeat: its program, and seconds since then."""
        if self._at is None:
            return {}
        return {"oom_program": self._program, "oom_age": time.monotonic() - self._at}

    def _run(self) -> None:
        while True:
            time.sleep(PAUSE)
            self.poll()

    def poll(self) -> None:
        """Compare with the last polls; a kill between them is logged and reported."""
        now = self._read()
        kills = read_oom_kills(self._root) or 0
        if kills > self._kills:
            # Of this poll, the last one, or the previous one, in case the counter was late.
            candidates = {**self._previous, **self._last, **now}
            now, gone = self._wait_for_gone(candidates)
            self._kills = kills
            self._tell(max(gone.values(), key=lambda entry: entry[1])[0] if gone else "")
        self._previous, self._last = self._last, now
        self._names = {process: name for process, name in self._names.items() if process in now}

    def _wait_for_gone(self, candidates: ProcessTable) -> tuple[ProcessTable, ProcessTable]:
        """Return the current and the gone processes: the counter rises before a victim exits."""
        for _ in range(ATTEMPTS):
            now = self._read()
            gone = {process: candidates[process] for process in candidates if process not in now}
            if gone:
                break
            time.sleep(PAUSE / ATTEMPTS)
        return now, gone

    def _tell(self, program: str) -> None:
        self._program, self._at = program, time.monotonic()
        limit = read_memory_limit(self._root)
        amount = f"the {round(limit / 2**30, 2):g} GB" if limit else "the memory"
        text = f"{program or 'A process'} was stopped: it wanted more than {amount} of this session"
        say(text)
        self._killed(text)

    def _read(self) -> ProcessTable:
        table = {}
        for pid in filter(str.isdecimal, os.listdir(self._proc)):
            try:
                with open(f"{self._proc}/{pid}/stat", "rb") as file:
                    stat = file.read().decode(errors="replace")
            except OSError:
                continue
            name = stat[stat.find("(") + 1 : stat.rfind(")")]
            fields = stat[stat.rfind(")") + 2 :].split()
            # A killed process is a zombie until its parent has noticed.
            if fields[0] not in "ZX":
                process = (pid, fields[19])
                table[process] = (self._cached_title(process, name), int(fields[21]))
        return table

    def _cached_title(self, process: tuple[str, str], name: str) -> str:
        cached = self._names.get(process)
        if cached is None or cached[0] != name:  # it may have become another program
            cached = self._names[process] = (name, self._title(process[0], name))
        return cached[1]

    def _title(self, pid: str, name: str) -> str:
        plain = "".join(c if " " <= c <= "~" else "?" for c in name)
        if not name.startswith("python"):
            return plain[:LONGEST_NAME]
        try:
            with open(f"{self._proc}/{pid}/cmdline", "rb") as file:
                command = file.read(4096)
        except OSError:
            return plain[:LONGEST_NAME]
        kernel = any(mark in command for mark in KERNELS)
        return f"{plain} (a notebook kernel)" if kernel else plain[:LONGEST_NAME]
