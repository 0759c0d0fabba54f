"""Which processes the watchdog ends: a job's limit on a GPU, and how often it must exceed it.

An honest session must never lose a process, so a single poll is not enough: the driver still lists
dead processes for a moment, and its figures of several processes are not of the same instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTEXTS = 8
"""Maximum number of processes for which a job gets the margin. See `allowance`."""
ENOUGH = 2.0
"""Successive polls over the limit after which processes are ended."""
FORGIVEN = 0.2
"""Subtracted from the score at a poll within the limit: a job that is over at every second poll,
because it frees its memory in between, is ended at the third; one that is over at every fifth is
not."""
LONGEST_DEATH = 30.0
"""Seconds for which the memory of a dying process is not counted."""


@dataclass(frozen=True)
class Allocation:
    """Bytes of one GPU that a living process of a job holds."""

    pid: int
    mark: str
    size: int


@dataclass
class Suspicion:
    """A job's record on one GPU over successive polls; lost with the watchdog."""

    score: float = 0.0
    marks: frozenset[str] = frozenset()
    """The processes at the last poll over the limit."""

    def fits(self) -> None:
        """Record a poll at which the job was within its limit."""
        self.score = max(0.0, self.score - FORGIVEN)

    def unknown(self) -> None:
        """Record a failed poll: the next one is the first again."""
        self.score = 0.0


@dataclass
class Dying:
    """Times since when dying processes are not counted, by their marks."""

    since: dict[str, float] = field(default_factory=dict)

    def excuses(self, mark: str, now: float) -> bool:
        """Whether a process that dies now need not be counted.

        Bounded, because its end may wait for something that its user controls (a file system).
        """
        return now - self.since.setdefault(mark, now) <= LONGEST_DEATH

    def forget_gone(self, present: set[str]) -> None:
        """Forget processes that the driver no longer lists on any GPU."""
        self.since = {mark: since for mark, since in self.since.items() if mark in present}


def allowance(sizes: Iterable[int], slice_: int, margin: int) -> int:
    """Return the bytes that a job may hold beyond its slice, for the contexts of its processes.

    A process adds no more than it holds itself, so that idle ones add nothing for others. The sum
    is bounded by `CONTEXTS` margins and by the slice: a job that bypasses the shim in many
    processes gets twice its slice at most.
    """
    contexts = sum(min(margin, size) for size in sizes)
    return max(margin, min(contexts, CONTEXTS * margin, slice_))


def shared_twice(sizes: Mapping[int, int], total: int, used: int | None) -> int:
    """Return the bytes of a job that the driver may have counted for two of its processes.

    NVML has no figure for memory that a process has imported (CUDA IPC). Where all processes
    together seem to hold more than is in use on the GPU, the difference was counted twice. All of
    it is taken in favour of the job, but never more than its other processes hold beside the
    largest, which may be the exporter.
    """
    if used is None or not sizes:
        return 0
    return max(0, min(total - used, sum(sizes.values()) - max(sizes.values())))


def judge(
    allocations: Iterable[Allocation], most: int, suspicion: Suspicion, counted_twice: int = 0
) -> list[Allocation]:
    """Return the processes to end, the largest first, until the others fit; updates the suspicion.

    At the second poll only processes that were there at the first: another one may be the successor
    of a process that has ended. From the third on all: processes that never live for two polls
    would escape otherwise.
    """
    by_size = sorted(allocations, key=lambda allocation: -allocation.size)
    total = sum(allocation.size for allocation in by_size) - counted_twice
    if total <= most:
        suspicion.fits()
        return []
    suspicion.score = min(suspicion.score + 1, ENOUGH + 1)
    previous = suspicion.marks
    suspicion.marks = frozenset(allocation.mark for allocation in by_size)
    if suspicion.score < ENOUGH:
        return []
    ended = []
    for allocation in by_size:
        if total <= most:
            break
        if allocation.mark in previous or suspicion.score > ENOUGH:
            ended.append(allocation)
        total -= allocation.size
    if ended:
        suspicion.score = 0.0
    return ended
