"""What is known of a GPU's jobs, poll by poll: how long each computes, what it is charged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

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
"""The same for `exceeds`: 500 of them."""
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
MOST, LEAST = 1.5, 0.3
"""Bounds of `Level`."""
LEAST_GAIN = 0.08
"""Of `Level`: the mean of about ten polls."""
NEARLY_FULL = 90.0
"""Percent from which on larger steps are needed, the more jobs compute: with a full GPU a charge
changes little in what they use together, and chance has little part in NVML's samples.
"""


@dataclass
class Span:
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
class Account:
    """One job on one GPU."""

    counter: int | None = None
    arrival: int = 0
    """ns of the clock of `time` at which its next launch conforms to its share."""
    counted: Span = field(default_factory=lambda: Span(KEPT_COUNT))
    used: Span = field(default_factory=lambda: Span(KEPT_USED))
    used_long: Span = field(default_factory=lambda: Span(KEPT_LONG))
    allowed_long: Span = field(default_factory=lambda: Span(KEPT_LONG))
    charged: Span = field(default_factory=lambda: Span(KEPT))
    """What was its own of what it measured."""
    since: float = 0.0
    """ns since something was measured last."""
    quiet: int = QUIET
    charge: int = 1000
    percent: int = 100
    busy: float | None = None
    memory: int = 0
    processes: int = 0
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
        return max(0, self.time - LATE) < self.arrival < self.time + REMEMBERED

    def computes(self, part: float) -> float:
        """The part of the time in which it computes, if it has `part` of the GPU then."""
        if self.quiet >= QUIET and not self.waits:
            return 0.0
        counted, used = min(self.counted.part, max(1, self.processes)), self.used.part
        if counted < used / 2:
            return used / part
        return self.percent / 100 / part if self.waits else counted

    @property
    def due(self) -> float:
        """Percent of the GPU that it should use: its share, or what it uses if it needs less."""
        needs = self.waits or 100 * self.used.part > self.percent
        return self.percent if needs else self.busy or 0.0

    def settle(self, span: int, measured: float, own: float) -> None:
        """The new charge, from what it measured in a poll of `span` ns and which part was its own.

        It stays while nothing is measured, as in the wait after a long kernel.
        """
        self.since += span
        if self.busy is None or not span or self.exceeds:
            self.charge = 1000
        elif measured or self.since >= REMEMBERED:
            self.since = 0.0
            self.charged.kept = KEPT if measured else 0.0
            self.charged.add(measured * own, measured)
            known = self.charged.time >= LITTLE
            self.charge = max(1, min(1000, round(1000 * self.charged.part))) if known else 1000

    @property
    def exceeds(self) -> bool:
        """Whether it used clearly more than its share, by NVML: then nothing is taken off.

        Not in its first minute, in which chance has too great a part in NVML's samples.
        """
        allowed = self.allowed_long.part
        most = allowed + max(allowed / 4, 1 / 20)
        return self.allowed_long.time > BEGINNING and self.used_long.part > most


@dataclass
class Level:
    """A factor for all charges of a GPU, by which its jobs use together what they should. The model
    of turns.py supposes that they compute independently, but they wait for each other.
    """

    factor: float = 1.0
    polls: int = 0

    def own(self, part: float) -> float:
        """What a job has of the GPU while it computes: `part` by the model."""
        return part * self.factor if self.polls and part < FULL / 100 else part

    def adjust(self, accounts: Iterable[Account], used: float) -> None:
        """`used` percent of the GPU by all of these; at first in larger steps than later."""
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
