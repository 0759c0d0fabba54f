"""Processes as root sees them in /proc: identity, whether they are dying, and how to end one.

A process that cannot be read loses only its own measurement, to its disadvantage: it does not count
as dying, and none of its memory is excused.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from stat import S_ISCHR
from typing import TypeVar

from portal.node.gpu import untrusted
from portal.node.gpu.cgroups import PROC, Step, job_of, step_of

UVM = Path("/dev/nvidia-uvm")
PF_EXITING = 0x4
"""Bit of the flags in /proc/PID/stat: the thread runs exit() (include/linux/sched.h)."""
PATIENCE = 0.2
"""Seconds to wait for the mappings of a process; 65,530 of them, the kernel's limit, take 0.1."""
SIGKILL_PENDING = 1 << (signal.SIGKILL - 1)
REMEMBERED = 100
"""Maximum number of unreadable processes that are logged."""
Value = TypeVar("Value")


class Processes:
    """The node's processes. For one that has exited, values are "", False, None or 0."""

    def __init__(
        self, proc: Path = PROC, uvm: Path = UVM, log: Callable[[str], None] | None = None
    ) -> None:
        self._proc = proc
        self._uvm = uvm
        self._log = log or (lambda _text: None)
        self._malformed: set[tuple[int, str]] = set()
        self._ask = untrusted.TimedQuery[list[str]](PATIENCE)

    def job(self, pid: int) -> int | None:
        """The job of a process, by its cgroup, which only root can change.

        Not by UID, which may be one of the subordinate UIDs of fakeroot.
        """
        return self._read(pid, "cgroup", None, lambda: job_of(pid, self._proc))

    def step(self, pid: int) -> Step | None:
        """The step of a job that a process belongs to, by its cgroup."""
        return self._read(pid, "cgroup", None, lambda: step_of(pid, self._proc))

    def uid(self, pid: int) -> int | None:
        """The real UID of a process; None if unknown."""
        return self._read(pid, "UID", None, lambda: _uid(self._proc / str(pid) / "status"))

    def mark(self, pid: int) -> str:
        """PID and start time, which identify a process."""
        fields = self._read(pid, "stat", None, lambda: _stat(self._proc / str(pid)))
        return "" if fields is None else f"{pid}@{(fields[19:] or ['?'])[0]}"

    def name(self, pid: int) -> str:
        """The name of its program, with non-printable characters escaped."""
        read = untrusted.read
        comm = self._read(pid, "comm", "", lambda: read(self._proc / str(pid) / "comm"))
        return untrusted.printable(comm.strip()) or "a process"

    def is_dying(self, pid: int) -> bool:
        """Whether it can run no more of its program, though the driver may still list it.

        All of its threads must be exiting or about to be killed: the first one may end alone, while
        the others go on with the process's GPU memory.
        """
        return self._read(pid, "status", False, lambda: self._is_dying(self._proc / str(pid)))

    def _is_dying(self, folder: Path) -> bool:
        if _is_killed(folder / "status"):
            return True
        return all(_is_exiting(thread) for thread in (folder / "task").iterdir())

    def managed(self, pid: int) -> int | None:
        """The most managed memory that a process can have: its mappings of /dev/nvidia-uvm.

        The kernel's figure, which a program cannot change; the part that is on a GPU is unknown.
        None if the mappings cannot be read, or not soon: a process can keep the lock that this
        needs, while a page of it waits for a file system of its user.
        """
        areas = self._ask(pid, lambda: self._of_device(pid))
        return None if areas is None else sum(map(_length, areas))

    def _of_device(self, pid: int) -> list[str]:
        """Return the address ranges where the device is mapped, by any name; raises OSError."""
        folder = self._proc / str(pid)
        text = untrusted.read(folder / "maps")
        try:
            device = self._uvm.stat()
        except OSError:
            return []  # no process has managed memory here
        file = f"{os.major(device.st_dev):02x}:{os.minor(device.st_dev):02x} {device.st_ino}"
        is_device, areas = {file: True}, []
        for line in untrusted.lines(text):
            area, _, _, major, inode, *_ = line.split(" ", 5)
            file = f"{major} {inode}"
            if file not in is_device and line.endswith("/nvidia-uvm"):
                is_device[file] = _is_device(folder / "map_files" / area, device)
            if is_device.get(file):
                areas.append(area)
        return areas

    def end(self, pid: int, job: int) -> bool:
        """Kill a process of a job, never one that has reused its PID."""
        return _kill_if(pid, lambda: self.job(pid) == job)

    def end_tracers(self, pid: int) -> list[int]:
        """Kill the tracers of a process, except root's; returns their PIDs.

        A process that is stopped for its tracer does not end at any signal.
        """
        return [
            tracer
            for tracer in sorted(self._tracers(pid))
            if _kill_if(tracer, lambda: tracer in self._tracers(pid) and bool(self.uid(tracer)))  # noqa: B023
        ]

    def _tracers(self, pid: int) -> set[int]:
        """Return the PIDs of the tracers of a process's threads."""
        return self._read(pid, "tracers", set(), lambda: _tracers(self._proc / str(pid)))

    def _read(self, pid: int, field: str, default: Value, read: Callable[[], Value]) -> Value:
        """Return the result of `read`, or the default if the process has exited or is malformed."""
        try:
            return read()
        except OSError:
            return default
        except Exception as error:
            if (pid, field) not in self._malformed and len(self._malformed) < REMEMBERED:
                self._malformed.add((pid, field))
                self._log(f"PID {pid}: its {field} cannot be read: {error!r}")
            return default


def _stat(folder: Path) -> list[str]:
    """The fields of stat from the state on, after the name, which may contain any character."""
    return untrusted.read(folder / "stat").rpartition(")")[2].split()


def _is_exiting(thread: Path) -> bool:
    try:
        return bool(int(_stat(thread)[6]) & PF_EXITING)
    except (FileNotFoundError, ProcessLookupError):
        return True


def _is_killed(status: Path) -> bool:
    """Whether SIGKILL is pending, for the process or its thread.

    With any fatal signal the kernel sends SIGKILL to each thread, and drops what comes later: a
    process that got SIGTERM first, as Slurm sends it, never has SIGKILL pending as a whole.
    """
    fields = untrusted.fields(untrusted.read(status))
    pending = (int(fields.get(name, "0"), 16) for name in ("ShdPnd", "SigPnd"))
    return any(signals & SIGKILL_PENDING for signals in pending)


def _uid(status: Path) -> int:
    return int(untrusted.fields(untrusted.read(status))["Uid"].split()[0])


def _tracers(folder: Path) -> set[int]:
    texts = (untrusted.read(thread / "status") for thread in (folder / "task").iterdir())
    return {int(untrusted.fields(text).get("TracerPid", "0")) for text in texts} - {0}


def _length(area: str) -> int:
    """The length of a mapping, from its addresses."""
    first, _, last = area.partition("-")
    return int(last, 16) - int(first, 16)


def _is_device(mapped: Path, device: os.stat_result) -> bool:
    """Whether a mapping is of the device, by another device file, and not of a file of its name."""
    try:
        status = mapped.stat()
    except OSError:  # gone, or on a file system that root cannot enter, where no device works
        return False
    if S_ISCHR(device.st_mode):
        return S_ISCHR(status.st_mode) and status.st_rdev == device.st_rdev
    return (status.st_dev, status.st_ino) == (device.st_dev, device.st_ino)


def _kill_if(pid: int, condition: Callable[[], bool]) -> bool:
    """Kill a process if the condition holds for it, never one that has reused its PID."""
    try:
        handle = os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            return False
        return condition() and _kill(pid)  # Linux before 5.3 has no pidfd_open
    try:
        if not condition():
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
