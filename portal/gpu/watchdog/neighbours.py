"""What each session learns about its neighbours on a GPU: the file `load` in a job's folder.

gres/shim/load.h has the format. The limiter inside a session measures its work with the GPU's own
clock. While neighbours' work takes turns with it, that clock runs on, so it measures more than the
session has used. `charge` is the part of it that the limiter charges, so that sessions that fill a
GPU together get all of it.

NVML's figures of processes are too coarse for that: five times a second it looks which process the
GPU runs (H200, driver 580), so in one second each of eight equal sessions has 0, 20 or 40 %. So the
charge follows from how long the neighbours compute by their sessions' own counts (turns.py), and is
corrected by what NVML tells of all processes together, which is exact (`_Level`).

A count is in a file that belongs to the user. Forging it does not change the forger's own charge,
only the neighbours'; and a count is not believed that is clearly below what NVML shows (`computes`).
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from portal.gpu.slices import JobSlice, write_atomically
from portal.gpu.watchdog.turns import mean_part, others

OFFSET = 32 << 10
"""SLIPWAY_LIMITER_OFFSET of gres/shim/shim.h: a line of 64 bytes for each GPU of the slice."""
LINE = 64
MEASURED = 8
"""In it, after the arrival time: the ns that the limiter has measured."""

COMPUTES = 1.0
"""Percent of a GPU from which on a process counts as computing: NVML's resolution."""
QUIET = 3
"""Polls without any use after which a job no longer counts as computing: NVML's samples may miss it
for so long."""
FULL = 97.0
"""Percent that all jobs together should use at most: at 100 no charge would be too low."""
KEPT = 0.5
"""Weight of what was known before at a poll. One poll alone is too short, since what is measured in
it may have begun in the one before."""
KEPT_COUNT = 0.7
"""The same for how long a job computes by its own count."""
KEPT_USED = 0.9
"""The same for what NVML shows of it: 50 of its samples."""
KEPT_LONG = 0.99
"""The same for `_exceeds`: 500 of them."""
BEGINNING = 60e9
"""ns after which it is known what a job uses."""
REMEMBERED = 12e9
"""ns without a measurement after which nothing is known of a job: a session waits for ten seconds
at most (SHARE_DEBT of gres/shim/share.h), and a kernel is measured when it ends."""
LITTLE = 10e6
"""ns of measured time below which no quotient is meaningful."""
LATE = 50_000_000
"""ns by which the arrival time of a job that waits for its share may be over: half of
SHARE_TOLERANCE, by which that of others is."""
ROUNDS = 20
"""Of solving for the parts, which depend on each other."""
LEAST_GAIN = 0.08
"""Of `_Level`: the mean of about ten polls."""


@dataclass
class _Span:
    """A mean of polls, the last ones most: ns of use in so many ns of time."""

    kept: float
    use: float = 0.0
    time: float = 0.0

    def add(self, use: float, time_: float) -> None:
        self.use = self.use * self.kept + use
        self.time = self.time * self.kept + time_

    @property
    def part(self) -> float:
        return self.use / self.time if self.time else 0.0


@dataclass
class _Account:
    """One job on one GPU."""

    counter: int | None = None
    arrival: int = 0
    """ns of the clock of `time` at which its next launch conforms to its share."""
    counted: _Span = field(default_factory=lambda: _Span(KEPT_COUNT))
    used: _Span = field(default_factory=lambda: _Span(KEPT_USED))
    used_long: _Span = field(default_factory=lambda: _Span(KEPT_LONG))
    allowed_long: _Span = field(default_factory=lambda: _Span(KEPT_LONG))
    charged: _Span = field(default_factory=lambda: _Span(KEPT))
    """What was its own of what it measured; the quotient is its charge."""
    since: float = 0.0
    """ns since something was measured last."""
    quiet: int = QUIET
    charge: int = 1000
    percent: int = 100
    busy: float | None = None
    memory: int = 0
    time: int = 0

    def observe(self, span: int, measured: float) -> None:
        """Account what it measured in a poll, and what NVML says that it used."""
        used = span * (self.busy or 0.0) / 100
        self.counted.add(measured, span)
        self.used.add(used, span)
        self.used_long.add(used, span)
        self.allowed_long.add(span * self.percent / 100, span)
        self.quiet = 0 if measured or (self.busy or 0.0) >= COMPUTES else self.quiet + 1

    @property
    def waits(self) -> bool:
        """Whether it has used up its share, as it was charged."""
        return self.arrival > max(0, self.time - LATE)

    def computes(self, part: float) -> float:
        """The part of the time in which it computes, if it has `part` of the GPU then."""
        counted, used = self.counted.part, self.used.part
        if counted < used / 2:
            return used / part
        return self.percent / 100 / part if self.waits else counted

    @property
    def due(self) -> float:
        """Percent of the GPU that it should use: its share, or less if it does not need that."""
        return self.percent if self.waits else min(self.percent, 100 * self.used.part)


@dataclass
class _Level:
    """A factor for all charges of a GPU, by which its jobs use together what they should. The model
    of turns.py supposes that they compute independently, but they wait for each other.
    """

    factor: float = 1.0
    polls: int = 0

    def adjust(self, accounts: Iterable[_Account], used: float) -> None:
        """`used` percent of the GPU by all of these; at first in larger steps than later."""
        computing = [account for account in accounts if account.quiet < QUIET or account.waits]
        if len(computing) < 2:
            self.polls = 0
            return
        ratio = used / max(COMPUTES, min(FULL, sum(account.due for account in computing)))
        gain = max(LEAST_GAIN, 1 / (2 + self.polls))
        self.factor *= 1 + gain * (min(1.5, max(0.5, ratio)) - 1)
        self.factor = min(1.5, max(0.3, self.factor))
        self.polls += 1


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
    def total(self) -> float:
        """Percent of the GPU's time that all processes used."""
        return sum((self.busy or {}).values())

    @property
    def strangers(self) -> float:
        """What is no job's of that."""
        return self.total - sum(self.used(job) for job in self.slices)


class Neighbours:
    """The accounts of all jobs on all GPUs of a node."""

    def __init__(self, folder: Callable[[int], Path], log: Callable[[str], None]) -> None:
        self._folder = folder
        self._log = log
        self._accounts: dict[tuple[int, str], _Account] = {}
        self._strangers: dict[str, _Account] = {}
        self._levels: dict[str, _Level] = {}
        self._times: dict[str, int] = {}

    def measured(self, seen: Seen) -> None:
        """Account what a poll saw of a GPU."""
        span = seen.time - self._times.get(seen.uuid, seen.time)
        self._times[seen.uuid] = seen.time
        for job, uuid in list(self._accounts):
            if uuid == seen.uuid and job not in seen.slices:
                del self._accounts[job, uuid]
        measured: dict[int, float] = {}
        for job, slice_ in seen.slices.items():
            account = self._accounts.setdefault((job, seen.uuid), _Account())
            account.time = seen.time
            account.memory = sum(seen.memory.get(job, {}).values())
            account.busy = None if seen.busy is None else seen.used(job)
            measured[job] = self._measured_by_session(job, slice_, seen.uuid, account)
            account.observe(span, measured[job])
        self._settle(seen, span, measured)

    def _settle(self, seen: Seen, span: int, measured: Mapping[int, float]) -> None:
        """The new shares and charges of a GPU's jobs."""
        accounts = {job: self._accounts[job, seen.uuid] for job in seen.slices}
        for job, account in accounts.items():
            account.percent = _percent(job, seen, accounts)
        strangers = self._strangers.setdefault(seen.uuid, _Account())
        strangers.busy = seen.strangers
        strangers.observe(span, 0.0)
        parts = _parts([*accounts.values(), strangers])
        level = self._levels.setdefault(seen.uuid, _Level())
        level.adjust(accounts.values(), seen.total - seen.strangers)
        for (job, account), part in zip(accounts.items(), parts):
            own = part * level.factor if part < FULL / 100 else part
            account.charge = _charge(account, span, measured[job], own)

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
        counters = _read_counters(self._folder(job) / "counters", place)
        before, (account.arrival, account.counter) = account.counter, counters or (0, None)
        if before is None or account.counter is None:
            return 0.0
        return float(max(0, account.counter - before))


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


def _read_counters(file: Path, place: int) -> tuple[int, int] | None:
    """The arrival time and the measured time, both in ns."""
    try:
        # Not waiting for a writer, should a user ever manage to put a pipe there.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.pread(descriptor, 16, OFFSET + place * LINE)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(data) < 16:
        return None
    arrival, measured = struct.unpack("=qq", data)
    return int(arrival), int(measured)


def _percent(job: int, seen: Seen, accounts: Mapping[int, _Account]) -> int:
    """The job's share at present: its own, or more while others leave theirs unused.

    A job that does not compute keeps its own, so that it has it as soon as it begins; the others
    are back at theirs at the poll after that.
    """
    own = _own(seen.slices[job], seen.uuid)
    if seen.slices[job].policy != "fair" or accounts[job].quiet >= QUIET:
        return own
    total = sum(
        _own(slice_, seen.uuid)
        for other, slice_ in seen.slices.items()
        if accounts[other].quiet < QUIET
    )
    return max(own, min(100, own * 100 // max(1, total)))


def _own(slice_: JobSlice, uuid: str) -> int:
    return next(part.sm_percent for part in slice_.parts if part.uuid == uuid)


def _parts(accounts: Sequence[_Account]) -> list[float]:
    """The part of the GPU that each has while it computes."""
    parts = [1.0] * len(accounts)
    for _ in range(ROUNDS):
        active = [account.computes(part) for account, part in zip(accounts, parts)]
        parts = [mean_part(others(active, at)) for at in range(len(active))]
    return parts


def _charge(account: _Account, span: int, measured: float, own: float) -> int:
    """Thousandths of measured time to charge, of which `own` was the job's in this poll.

    It stays while nothing is measured, as in the wait after a long kernel.
    """
    if account.busy is None or span <= 0:
        return 1000
    account.since += span
    if not _exceeds(account) and not measured and account.since < REMEMBERED:
        return account.charge
    account.since = 0.0
    account.charged.kept = KEPT if measured else 0.0
    account.charged.add(measured * own, measured)
    if account.charged.time < LITTLE or _exceeds(account):
        return 1000
    return max(1, min(1000, round(1000 * account.charged.part)))


def _exceeds(account: _Account) -> bool:
    """Whether a job used clearly more than its share, by NVML: then nothing is taken off.

    Not in its first minute, in which chance has too great a part in NVML's samples.
    """
    allowed = account.allowed_long.part
    span = account.allowed_long.time
    return span > BEGINNING and account.used_long.part > allowed + max(allowed / 4, 1 / 20)
