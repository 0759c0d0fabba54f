"""The file `load` in a job's folder, by which a session knows of its neighbours on a GPU.

gres/shim/load.h has the format. The limiter inside a session measures its work with the GPU's own
clock. While neighbours' work takes turns with it, that clock runs on, so it measures more than the
session has used. `charge` is the part of it that the limiter charges, so that sessions that fill a
GPU together get all of it.

NVML's figures of processes are too coarse for that: it samples five times a second which process
the GPU runs (H200, driver 580), so in one second each of eight equal sessions has 0, 20 or 40 %. So
the charge follows from how long the neighbours compute by their sessions' own counts (turns.py),
and is corrected by NVML's total of all processes, which is exact (`Level`).

A count is in a file that belongs to the user. Forging it does not change the forger's own charge,
only the neighbours'. A count that is clearly below NVML's figure is ignored (`computes`), and a job
that used clearly more than its share over some minutes gets no discount (`exceeds`).
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from portal.node.gpu.slices import JobSlice, write_atomically
from portal.node.gpu.watchdog.accounts import QUIET, Account, Level
from portal.node.gpu.watchdog.turns import mean_part, others

OFFSET = 32 << 10
"""SLIPWAY_LIMITER_OFFSET of gres/shim/shim.h: a line of 64 bytes for each GPU of the slice, whose
first 16 are the arrival time and the measured time, in ns."""
LINE = 64
ROUNDS = 20
"""Of solving for the parts, which depend on each other."""


@dataclass
class Measurement:
    """A poll's figures of one GPU."""

    uuid: str
    slices: Mapping[int, JobSlice]
    """Of all jobs that may use it."""
    memory: Mapping[int, Mapping[int, int]]
    """Bytes by PID, by job."""
    busy: Mapping[int, float] | None
    """Percent by PID since the last poll; None if NVML does not support it."""
    time: int = field(default_factory=time.monotonic_ns)

    def used(self, job: int) -> float:
        """Percent of the GPU's time that a job's processes used."""
        busy = self.busy or {}
        return min(100.0, sum(busy.get(pid, 0.0) for pid in self.memory.get(job, {})))

    @property
    def total(self) -> float:
        """Percent of the GPU's time that all processes used."""
        return sum((self.busy or {}).values())

    @property
    def strangers(self) -> float:
        """Percent of the GPU's time that processes outside of these jobs used."""
        return self.total - sum(map(self.used, self.slices))


class Neighbours:
    """The accounts of all jobs on all GPUs of a node."""

    def __init__(self, folder: Callable[[int], Path], log: Callable[[str], None]) -> None:
        self._folder = folder
        self._log = log
        self._accounts: dict[tuple[int, str], Account] = {}
        self._strangers: dict[str, Account] = {}
        self._levels: dict[str, Level] = {}
        self._times: dict[str, int] = {}

    def record(self, poll: Measurement) -> None:
        """Account a poll's figures of a GPU."""
        span = poll.time - self._times.get(poll.uuid, poll.time)
        self._times[poll.uuid] = poll.time
        for job, uuid in list(self._accounts):
            if uuid == poll.uuid and job not in poll.slices:
                del self._accounts[job, uuid]
        measured: dict[int, float] = {}
        for job, slice_ in poll.slices.items():
            account = self._accounts.setdefault((job, poll.uuid), Account())
            account.time = poll.time
            by_pid = poll.memory.get(job, {})
            account.memory, account.processes = sum(by_pid.values()), len(by_pid)
            account.busy = None if poll.busy is None else poll.used(job)
            measured[job] = self._measured_by_session(job, slice_, poll.uuid, account)
            account.observe(span, measured[job])
        self._settle(poll, span, measured)

    def _settle(self, poll: Measurement, span: int, measured: Mapping[int, float]) -> None:
        """Update the shares and charges of a GPU's jobs."""
        accounts = {job: self._accounts[job, poll.uuid] for job in poll.slices}
        for job, account in accounts.items():
            account.percent = _percent(job, poll, accounts)
        strangers = self._strangers.setdefault(poll.uuid, Account())
        strangers.busy = poll.strangers
        strangers.observe(span, 0.0)
        parts = _parts([*accounts.values(), strangers])
        level = self._levels.setdefault(poll.uuid, Level())
        if poll.busy is not None and span > 0:
            level.adjust(accounts.values(), poll.total - poll.strangers)
        for (job, account), part in zip(accounts.items(), parts):
            account.settle(span, measured[job], level.corrected(part))

    def write(self, job: int, slice_: JobSlice) -> None:
        """Write the job's file, which its session reads."""
        accounts = [self._accounts.get((job, part.uuid)) for part in slice_.parts]
        times = [account.time for account in accounts if account]
        lines = ["version=1", f"time={min(times, default=0)}"]
        for part, account in zip(slice_.parts, accounts):
            if account is None:
                return  # not measured yet
            lines.append(f"gpu={part.uuid}")
            if account.busy is not None:
                lines.append(f"busy={round(account.busy * 10)}")
            lines.append(f"memory={account.memory}")
            lines.append(f"charge={account.charge}")
            lines.append(f"percent={account.percent}")
        folder = self._folder(job)
        try:
            write_atomically(folder / "load", "\n".join(lines) + "\n")
        except OSError as error:
            if folder.exists():  # unless Epilog was faster
                self._log(f"job {job}: {error}")

    def _measured_by_session(
        self, job: int, slice_: JobSlice, uuid: str, account: Account
    ) -> float:
        """Return the ns that the session has measured since the last poll, by its own count."""
        index = next(i for i, part in enumerate(slice_.parts) if part.uuid == uuid)
        counters = _read_counters(self._folder(job) / "counters", index)
        previous, (account.arrival, account.counter) = account.counter, counters or (0, None)
        if previous is None or account.counter is None:
            return 0.0
        return float(max(0, account.counter - previous))


def forgive(folder: Path, slice_: JobSlice) -> None:
    """End a job's wait for its share: its arrival times become 0.

    Raises OSError, among others for a job that has no counters.
    """
    descriptor = os.open(folder / "counters", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for index in range(len(slice_.parts)):
            os.pwrite(descriptor, bytes(8), OFFSET + index * LINE)
    finally:
        os.close(descriptor)


def _read_counters(file: Path, index: int) -> tuple[int, int] | None:
    """Read the arrival time and the measured time, both in ns."""
    try:
        # Non-blocking, in case a user ever manages to put a pipe there.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.pread(descriptor, 16, OFFSET + index * LINE)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(data) < 16:
        return None
    arrival, measured = struct.unpack("=qq", data)
    return int(arrival), int(measured)


def _percent(job: int, poll: Measurement, accounts: Mapping[int, Account]) -> int:
    """Return the job's current share: its own, or more while others leave theirs unused.

    An idle job keeps its own share, so that it has it as soon as it starts to compute; the others
    are back at theirs at the next poll.
    """
    share = _share(poll.slices[job], poll.uuid)
    if poll.slices[job].policy != "fair" or accounts[job].quiet >= QUIET:
        return share
    total = sum(
        _share(slice_, poll.uuid)
        for other, slice_ in poll.slices.items()
        if accounts[other].quiet < QUIET
    )
    return max(share, min(100, share * 100 // max(1, total)))


def _share(slice_: JobSlice, uuid: str) -> int:
    return next(part.sm_percent for part in slice_.parts if part.uuid == uuid)


def _parts(accounts: Sequence[Account]) -> list[float]:
    """Return the part of the GPU that each job gets while it computes."""
    parts = [1.0] * len(accounts)
    for _ in range(ROUNDS):
        active = [account.computes(part) for account, part in zip(accounts, parts)]
        parts = [mean_part(others(active, at)) for at in range(len(active))]
    return parts
