"""What a process has of a GPU while others compute, too.

The driver's time slices go by turns to all processes that have work, whoever's they are. The model
is that they compute at independent times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

MOST = 32.0
"""Processes of one job that are told apart."""


def others(active: Sequence[float], at: int) -> list[float]:
    """What takes turns with a process of the job at an index: the parts of the time in which the
    other jobs' processes compute, and its own others. More than 1 is more than one process.
    """
    computing = active[at]
    return [*active[:at], *active[at + 1 :], computing - computing / max(1, ceil(computing))]


def mean_part(computing: Iterable[float]) -> float:
    """The mean part of the GPU that a process has while it computes beside others that compute for
    these parts of the time.
    """
    always = 0
    chances = [1.0]  # by how many of those compute that do so sometimes
    for part in computing:
        processes, fraction = divmod(max(0.0, min(part, MOST)), 1)
        always += int(processes)
        if fraction:
            chances = _with_another(chances, fraction)
    return sum(chance / (1 + always + number) for number, chance in enumerate(chances))


def _with_another(chances: Sequence[float], chance: float) -> list[float]:
    without, with_it = [*chances, 0.0], [0.0, *chances]
    return [old * (1 - chance) + new * chance for old, new in zip(without, with_it)]
