"""Processes as root sees them in /proc: identity, whether they are dying, and how to end one."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from threading import Thread

from portal.gpu.cgroups import PROC, job_of

UVM = Path("/dev/nvidia-uvm")
PF_EXITING = 0x4
"""Bit of the flags in /proc/PID/stat: the thread runs exit() (include/linux/sched.h)."""
PATIENCE = 0.2
"""Seconds to wait for the mappings of a process; 65,530 of them, the kernel's limit, take 0.1."""
SIGKILL_PENDING = 1 << (signal.SIGKILL - 1)


class Processes:
    """The node's processes. Whatever has exited in the meantime is "", False or 0."""

    def __init__(self, proc: Path = PROC, uvm: Path = UVM) -> None:
        self._proc = proc
        self._uvm = uvm
        self._reading: set[int] = set()

    def job(self, pid: int) -> int | None:
        """The job of a process, by its cgroup, which only root can change.

        Not by UID, which may be one of the subordinate UIDs of fakeroot.
        """
        return job_of(pid, self._proc)

    def mark(self, pid: int) -> str:
        """PID and start time, which identify a process."""
        fields = _stat(self._proc / str(pid))
        return f"{pid}@{fields[19]}" if fields else ""

    def name(self, pid: int) -> str:
        """The name of its program."""
        return _read(self._proc / str(pid) / "comm").strip() or "a process"

    def is_dying(self, pid: int) -> bool:
        """Whether it can run no more of its program, though the driver may still list it.

        All of its threads must be exiting or about to be killed: the first one may end alone, while
        the others go on with the process's GPU memory.
        """
        folder = self._proc / str(pid)
        if _pending(folder / "status") & SIGKILL_PENDING:
            return True
        try:
            return all(_is_exiting(thread) for thread in (folder / "task").iterdir())
        except OSError:
            return False

    def managed(self, pid: int) -> int | None:
        """The most managed memory that a process can have: its mappings of /dev/nvidia-uvm.

        The kernel's figure, which a program cannot change; what of it is on a GPU is not known.
        None if the mappings cannot be read, or not soon: a process can keep the lock that they
        need, while a page of it waits for a file system of its own.
        """
        text = self._maps(pid)
        if text is None:
            return None
        try:
            found = self._uvm.stat()
            file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x} {found.st_ino} "
        except OSError:
            file = ""
        return sum(
            _length(line)
            for line in text.splitlines()
            if line.endswith("/nvidia-uvm") or (file and f" {file}" in line)
        )

    def _maps(self, pid: int) -> str | None:
        if pid in self._reading:
            return None  # an earlier reader still waits
        found: list[str] = []

        def read() -> None:
            try:
                found.append((self._proc / str(pid) / "maps").read_text(errors="replace"))
            except OSError:
                pass
            finally:
                self._reading.discard(pid)

        self._reading.add(pid)
        reader = Thread(target=read, daemon=True)
        reader.start()
        reader.join(PATIENCE)
        return found[0] if found else None

    def end(self, pid: int, job: int) -> bool:
        """Kill a process of a job, never another one that has reused its PID."""
        try:
            handle = os.pidfd_open(pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                return False
            return self.job(pid) == job and _kill(pid)  # Linux before 5.3 has no pidfd_open
        try:
            if self.job(pid) != job:
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _stat(folder: Path) -> list[str]:
    """The fields of stat from the state on, after the name, which may contain any character."""
    return _read(folder / "stat").rpartition(")")[2].split()


def _is_exiting(thread: Path) -> bool:
    fields = _stat(thread)
    return not fields or bool(int(fields[6]) & PF_EXITING)


def _pending(status: Path) -> int:
    """The signals that are pending for the whole process."""
    for line in _read(status).splitlines():
        if line.startswith("ShdPnd:"):
            return int(line.split()[1], 16)
    return 0


def _length(line: str) -> int:
    """The length of a mapping, from its line of maps."""
    first, _, last = line.split(" ", 1)[0].partition("-")
    return int(last, 16) - int(first, 16)


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
