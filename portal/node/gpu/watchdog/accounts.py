"""Accounts of the jobs on a GPU, updated at every poll: compute time and charge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

COMPUTES = 1.0
"""Percent of a GPU from which a process counts as computing: NVML's resolution."""
QUIET = 3
"""Polls without any use after which a job no longer counts as computing: NVML's samples may miss it
that long."""
FULL = 97.0
"""Percent that all jobs together should use at most: at 100 no charge would be too low."""
DECAY = 0.5
"""Weight of earlier polls in a mean. A single poll is too short, since a kernel measured in it may
have started during the previous one."""
DECAY_COUNT = 0.7
"""The same for a job's compute time by its own count."""
DECAY_USED = 0.9
"""The same for NVML's utilisation: 50 of its samples."""
DECAY_LONG = 0.99
"""The same for `exceeds`: 500 of them."""
BEGINNING = 60e9
"""ns of observation after which a job's use is reliable."""
REMEMBERED = 12e9
"""ns without a measurement after which a job's mean is reset: a session waits for ten seconds at
most (SHARE_DEBT of gres/shim/share.h), and a kernel is measured when it ends."""
LITTLE = 10e6
"""ns of measured time below which no quotient is meaningful."""
LATE = 50_000_000
"""ns by which the arrival time of a job that waits for its share may lie in the past: half of
SHARE_TOLERANCE, which applies to jobs that do not wait."""
MOST, LEAST = 1.5, 0.3
"""Bounds of `Level`."""
LEAST_GAIN = 0.08
"""Of `Level`: the mean of about ten polls."""
NEARLY_FULL = 90.0
"""Percent of due use from which the gain grows with the number of computing jobs: on a full GPU a
charge changes their total use little, and NVML's samples vary little.
"""


@dataclass
class Span:
    """An exponentially weighted mean over polls: ns of use per ns of time."""

    decay: float
    use: float = 0.0
    time: float = 0.0

    def add(self, use: float, time_: float) -> None:
        self.use = self.use * self.decay + use
        self.time = self.time * self.decay + time_

    @property
    def part(self) -> float:
        return self.use / self.time if self.time else 0.0


@dataclass
class Account:
    """One job on one GPU."""

    counter: int | None = None
    arrival: int = 0
    """ns of the clock of `time` at which its next launch conforms to its share."""
    counted: Span = field(default_factory=lambda: Span(DECAY_COUNT))
    used: Span = field(default_factory=lambda: Span(DECAY_USED))
    used_long: Span = field(default_factory=lambda: Span(DECAY_LONG))
    allowed_long: Span = field(default_factory=lambda: Span(DECAY_LONG))
    charged: Span = field(default_factory=lambda: Span(DECAY))
    """Its own part of its measured time."""
    since: float = 0.0
    """ns since the last measurement."""
    quiet: int = QUIET
    charge: int = 1000
    percent: int = 100
    busy: float | None = None
    memory: int = 0
    processes: int = 0
    time: int = 0

    def observe(self, span: int, measured: float) -> None:
        """Account a poll of `span` ns: the ns that the session measured, and NVML's utilisation."""
        used = span * (self.busy or 0.0) / 100
        self.counted.add(measured, span)
        self.used.add(used, span)
        self.used_long.add(used, span)
        self.allowed_long.add(span * self.percent / 100, span)
        self.quiet = 0 if measured or (self.busy or 0.0) >= COMPUTES else self.quiet + 1

    @property
    def waits(self) -> bool:
        """Whether its charges have used up its share."""
        return max(0, self.time - LATE) < self.arrival < self.time + REMEMBERED

    def computes(self, part: float) -> float:
        """The fraction of the time in which it computes, if it then gets `part` of the GPU."""
        if self.quiet >= QUIET and not self.waits:
            return 0.0
        counted, used = min(self.counted.part, max(1, self.processes)), self.used.part
        if counted < used / 2:
            return used / part
        return self.percent / 100 / part if self.waits else counted

    @property
    def due(self) -> float:
        """Percent of the GPU that it should use: its share, or its use if it needs less."""
        needs = self.waits or 100 * self.used.part > self.percent
        return self.percent if needs else self.busy or 0.0

    def settle(self, span: int, measured: float, own_part: float) -> None:
        """Update the charge from the ns `measured` in a poll of `span` ns and its own part of them.

        It is unchanged while nothing is measured, as in the wait after a long kernel.
        """
        self.since += span
        if self.busy is None or not span or self.exceeds:
            self.charge = 1000
        elif measured or self.since >= REMEMBERED:
            self.since = 0.0
            self.charged.decay = DECAY if measured else 0.0
            self.charged.add(measured * own_part, measured)
            reliable = self.charged.time >= LITTLE
            self.charge = max(1, min(1000, round(1000 * self.charged.part))) if reliable else 1000

    @property
    def exceeds(self) -> bool:
        """Whether it used clearly more than its share, by NVML: then it gets no discount.

        Never in its first minute, in which NVML's samples vary too much.
        """
        allowed = self.allowed_long.part
        most = allowed + max(allowed / 4, 1 / 20)
        return self.allowed_long.time > BEGINNING and self.used_long.part > most


@dataclass
class Level:
    """A factor for all charges of a GPU, which corrects the model of turns.py: it assumes that jobs
    compute independently, but they wait for each other.
    """

    factor: float = 1.0
    polls: int = 0

    def corrected(self, part: float) -> float:
        """A job's part of the GPU while it computes; `part` is the model's estimate."""
        return part * self.factor if self.polls and part < FULL / 100 else part

    def adjust(self, accounts: Iterable[Account], used: float) -> None:
        """Adjust the factor to the percentage that all accounts used; the steps become smaller."""
        computing = [account for account in accounts if account.quiet < QUIET or account.waits]
        if len(computing) < 2:
            self.polls = 0
            return
        due = min(FULL, sum(account.due for account in computing))
        gain = max(LEAST_GAIN, 1 / (2 + self.polls / 2))
        if due >= NEARLY_FULL:
            gain = max(gain, LEAST_GAIN * len(computing) / 2)
        ratio = used / max(COMPUTES, due)
        self.factor *= 1 + gain * (min(MOST, max(1 / MOST, ratio)) - 1)
        self.factor = min(MOST, max(LEAST, self.factor))
        self.polls += 1
