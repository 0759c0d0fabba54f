"""What each session learns about its neighbours on a GPU: the file `load` in a job's folder.

gres/shim/load.h has the format. The limiter inside a session measures its work with the GPU's own
clock. While neighbours' work takes turns with it, that clock runs on, so it measures more than the
session has used. NVML tells what it really used: the quotient is `charge`, by which the limiter
multiplies what it measures, so that sessions that fill a GPU together get all of it.

The measured time is in a file that belongs to the user. Whoever forges it changes their own charge
only, down to one part in the number of processes that compute (`_least`), and only as long as NVML
shows that the session stays near its share (`_exceeds`).
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from portal.gpu.slices import JobSlice, write_atomically

OFFSET = 32 << 10
"""SLIPWAY_LIMITER_OFFSET of gres/shim/shim.h: a line of 64 bytes for each GPU of the slice."""
LINE = 64
MEASURED = 8
"""In it, after the arrival time: the ns that the limiter has measured."""

COMPUTES = 1.0
"""Percent of a GPU from which on a process counts as computing: NVML's resolution."""
KEPT = 0.5
"""Weight of what was known before at a poll. One poll alone is too short, since what is measured in
it may have begun in the one before."""
FULL = 97.0
"""Percent from which on a GPU has nothing to give: the rest is lost between two kernels, and by
NVML's whole percents."""
STEEPEST = 4 / 3
"""The most by which `_correction` changes a charge at a poll: more would overshoot."""
KEPT_LONG = 0.95
"""The same for `_exceeds`: about 20 polls, so that a few long kernels are not taken for excess."""
BEGINNING = 6e9
"""ns after which it is known what a job uses."""
REMEMBERED = 12e9
"""ns without a measurement after which nothing is known of a job: a session waits for ten seconds
at most (SHARE_DEBT of gres/shim/share.h), and a kernel is measured when it ends."""
LITTLE = 10e6
"""ns of measured time below which no quotient is meaningful."""


@dataclass
class _Account:
    """One job on one GPU."""

    counter: int | None = None
    used: float = 0.0
    measured: float = 0.0
    span: float = 0.0
    used_since: float = 0.0
    """Since something was measured last."""
    span_since: float = 0.0
    used_long: float = 0.0
    allowed_long: float = 0.0
    span_long: float = 0.0
    charge: int = 1000
    percent: int = 100
    busy: float | None = None
    memory: int = 0
    time: int = 0


@dataclass
class Seen:
    """What a poll saw of one GPU."""

    uuid: str
    slices: Mapping[int, JobSlice]
    """Of all jobs that may use it."""
    memory: Mapping[int, Mapping[int, int]]
    """Bytes by PID, by job."""
    busy: Mapping[int, float] | None
    """Percent by PID since the last poll; None if NVML does not tell."""
    time: int = field(default_factory=time.monotonic_ns)

    def used(self, job: int) -> float:
        """Percent of the GPU's time that a job's processes used."""
        busy = self.busy or {}
        return min(100.0, sum(busy.get(pid, 0.0) for pid in self.memory.get(job, {})))

    @property
    def is_full(self) -> bool:
        """Whether the GPU has no idle time."""
        return sum((self.busy or {}).values()) >= FULL

    @property
    def computing(self) -> int:
        """The number of processes that compute, of whatever job."""
        return sum(1 for percent in (self.busy or {}).values() if percent >= COMPUTES)


class Neighbours:
    """The accounts of all jobs on all GPUs of a node."""

    def __init__(self, folder: Callable[[int], Path], log: Callable[[str], None]) -> None:
        self._folder = folder
        self._log = log
        self._accounts: dict[tuple[int, str], _Account] = {}
        self._times: dict[str, int] = {}

    def measured(self, seen: Seen) -> None:
        """Account what a poll saw of a GPU."""
        span = seen.time - self._times.get(seen.uuid, seen.time)
        self._times[seen.uuid] = seen.time
        for job, uuid in list(self._accounts):
            if uuid == seen.uuid and job not in seen.slices:
                del self._accounts[job, uuid]
        for job, slice_ in seen.slices.items():
            account = self._accounts.setdefault((job, seen.uuid), _Account())
            account.time = seen.time
            account.memory = sum(seen.memory.get(job, {}).values())
            account.busy = None if seen.busy is None else seen.used(job)
            account.percent = _percent(job, slice_, seen)
            measured = self._measured_by_session(job, slice_, seen.uuid, account)
            account.charge = _charge(account, span, measured, seen)

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
        self, job: int, slice_: JobSlice, uuid: str, account: _Account
    ) -> float:
        """The ns that the session has measured since the last poll, by its own count."""
        place = next(at for at, part in enumerate(slice_.parts) if part.uuid == uuid)
        counter = _read_counter(self._folder(job) / "counters", place)
        before, account.counter = account.counter, counter
        if before is None or counter is None:
            return 0.0
        return float(max(0, counter - before))


def forgive(folder: Path, slice_: JobSlice) -> None:
    """Cancel what a job still has to wait for its share: its arrival times become 0.

    Raises OSError, among others for a job that has no counters.
    """
    descriptor = os.open(folder / "counters", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for place in range(len(slice_.parts)):
            os.pwrite(descriptor, bytes(8), OFFSET + place * LINE)
    finally:
        os.close(descriptor)


def _read_counter(file: Path, place: int) -> int | None:
    try:
        # Not waiting for a writer, should a user ever manage to put a pipe there.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.pread(descriptor, 8, OFFSET + place * LINE + MEASURED)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return int(struct.unpack("=q", data)[0]) if len(data) == 8 else None


def _percent(job: int, slice_: JobSlice, seen: Seen) -> int:
    """The job's share at present: its own, or more while others leave theirs unused.

    A job that does not compute keeps its own, so that it has it as soon as it begins; the others
    are back at theirs at the poll after that.
    """
    own = _own(slice_, seen.uuid)
    if slice_.policy != "fair" or seen.used(job) < COMPUTES:
        return own
    total = sum(
        _own(other, seen.uuid)
        for number, other in seen.slices.items()
        if seen.used(number) >= COMPUTES
    )
    return max(own, min(100, own * 100 // max(1, total)))


def _own(slice_: JobSlice, uuid: str) -> int:
    return next(part.sm_percent for part in slice_.parts if part.uuid == uuid)


def _charge(account: _Account, span: int, measured: float, seen: Seen) -> int:
    """Thousandths of measured time to charge."""
    if account.busy is None or span <= 0:
        return 1000
    used = span * account.busy / 100
    account.used_long = account.used_long * KEPT_LONG + used
    account.allowed_long = account.allowed_long * KEPT_LONG + span * account.percent / 100
    account.span_long = account.span_long * KEPT_LONG + span
    account.used_since += used
    account.span_since += span
    if _exceeds(account):
        return 1000
    if not measured and account.span_since < REMEMBERED:
        return account.charge
    _settle(account, measured)
    if account.measured < max(LITTLE, account.used):
        return 1000
    part = account.used / account.measured * _correction(account, seen)
    return max(_least(seen.computing), min(1000, round(1000 * part)))


def _settle(account: _Account, measured: float) -> None:
    """Take in what was used until something was measured: a long kernel is measured at its end, maybe
    polls after it was seen to compute.
    """
    kept = KEPT if measured else 0.0
    account.used = account.used * kept + account.used_since
    account.measured = account.measured * kept + measured
    account.span = account.span * kept + account.span_since
    account.used_since = account.span_since = 0.0


def _correction(account: _Account, seen: Seen) -> float:
    """A factor for a job that is above its share, or below it while the GPU is idle.

    Each new charge lets sessions that wait compute a little more at the same time, so that they
    measure more of each other, which makes the next one smaller. Without this it took half a minute
    until eight of them had filled the GPU.
    """
    share = 100 * account.used / account.span / account.percent
    return min(STEEPEST, max(1.0 if seen.is_full else 1 / STEEPEST, share))


def _least(computing: int) -> int:
    """The driver's time slices go by turns to all processes that compute, whoever's they are."""
    return max(1, -(-1000 // max(1, computing)))


def _exceeds(account: _Account) -> bool:
    """Whether a job used clearly more than its share, by NVML: then nothing is taken off.

    Not in its first seconds, which may be those of one long kernel.
    """
    allowed = account.allowed_long + max(account.allowed_long / 4, account.span_long / 20)
    return account.span_long > BEGINNING and account.used_long > allowed
