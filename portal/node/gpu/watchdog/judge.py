"""Whom the watchdog ends: what a job may hold of a GPU, and how often it must have held more.

An honest session must never lose a process, so a single figure decides nothing: the driver lists
the dead for a moment, and its figures of several processes are not of one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTEXTS = 8
"""Processes for which a job gets the margin. See `room`."""
ENOUGH = 2.0
"""Looks over the limit, in a row, after which processes are ended."""
FORGIVEN = 0.2
"""What a look at which the job fits takes off: a job that is over at every second look, because it
frees its memory between them, is ended at the third one; one that is over once in five is not."""
LONGEST_DEATH = 30.0
"""Seconds for which the memory of a dying process is not counted."""


@dataclass(frozen=True)
class Held:
    """What a living process of a job holds of one GPU."""

    pid: int
    mark: str
    size: int


@dataclass
class Suspicion:
    """What is known of a job on one GPU from earlier looks; lost with the watchdog."""

    looks: float = 0.0
    seen: frozenset[str] = frozenset()
    """The processes at the last look over the limit."""

    def fits(self) -> None:
        """Record a look at which the job was within its limit."""
        self.looks = max(0.0, self.looks - FORGIVEN)

    def unknown(self) -> None:
        """Record a look that failed: the next one is the first again."""
        self.looks = 0.0


@dataclass
class Dying:
    """Since when processes that are not to be counted have been dying, by their marks."""

    since: dict[str, float] = field(default_factory=dict)

    def excuses(self, mark: str, now: float) -> bool:
        """Whether a process that dies now need not be counted.

        Bounded, because its end may wait for something that its user controls (a file system).
        """
        return now - self.since.setdefault(mark, now) <= LONGEST_DEATH

    def forget_gone(self, present: set[str]) -> None:
        """Forget processes that the driver no longer lists on any GPU."""
        self.since = {mark: since for mark, since in self.since.items() if mark in present}


def room(sizes: Iterable[int], slice_: int, margin: int) -> int:
    """Bytes that a job may hold beyond its slice: the contexts of its processes.

    A process gets no more room than it holds itself, so that idle ones give none to others. The sum
    is bounded by `CONTEXTS` margins and by the slice: whoever bypasses the shim in many processes
    gets twice his slice at most.
    """
    wanted = sum(min(margin, size) for size in sizes)
    return max(margin, min(wanted, CONTEXTS * margin, slice_))


def shared_twice(sizes: Mapping[int, int], everybodys: int, used: int | None) -> int:
    """Bytes of a job that the driver may have counted for two of its processes.

    NVML has no figure for memory that a process has imported (CUDA IPC). Where all processes
    together seem to hold more than is in use on the GPU, the difference was counted twice. All of
    it is taken in favour of the job, but never more than its other processes hold beside the
    largest, which may be the exporter.
    """
    if used is None or not sizes:
        return 0
    return max(0, min(everybodys - used, sum(sizes.values()) - max(sizes.values())))


def judge(
    held: Iterable[Held], most: int, suspicion: Suspicion, counted_twice: int = 0
) -> list[Held]:
    """The processes to end, the largest first, until the others fit; updates the suspicion.

    At the second look only those that were there at the first: another one may be the successor
    of a process that has ended. From the third on any: processes that never live for two looks
    would escape otherwise.
    """
    by_size = sorted(held, key=lambda one: -one.size)
    total = sum(one.size for one in by_size) - counted_twice
    if total <= most:
        suspicion.fits()
        return []
    suspicion.looks = min(suspicion.looks + 1, ENOUGH + 1)
    before, suspicion.seen = suspicion.seen, frozenset(one.mark for one in by_size)
    if suspicion.looks < ENOUGH:
        return []
    ended = []
    for one in by_size:
        if total <= most:
            break
        if one.mark in before or suspicion.looks > ENOUGH:
            ended.append(one)
        total -= one.size
    if ended:
        suspicion.looks = 0.0
    return ended
