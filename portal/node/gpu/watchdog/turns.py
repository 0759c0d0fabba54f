"""Model of time slicing: the part of a GPU that a process gets while others compute, too.

The driver gives time slices in turn to all processes that have work, of any user. The model assumes
that they compute at independent times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

MOST = 32.0
"""Maximum number of processes of one job in the model."""


def others(active: Sequence[float], at: int) -> list[float]:
    """Return the loads that take turns with a process of the job at an index: the fractions of the
    time in which the other jobs compute, and this job's other processes. A load above 1 is of
    several processes.
    """
    computing = active[at]
    return [*active[:at], *active[at + 1 :], computing - computing / max(1, ceil(computing))]


def mean_part(computing: Iterable[float]) -> float:
    """Return the mean part of the GPU that a process gets while it computes beside others, which
    compute for these fractions of the time.
    """
    always = 0
    chances = [1.0]  # by the number of part-time processes that compute
    for part in computing:
        processes, fraction = divmod(max(0.0, min(part, MOST)), 1)
        always += int(processes)
        if fraction:
            chances = _with_another(chances, fraction)
    return sum(chance / (1 + always + number) for number, chance in enumerate(chances))


def _with_another(chances: Sequence[float], chance: float) -> list[float]:
    without, with_it = [*chances, 0.0], [0.0, *chances]
    return [old * (1 - chance) + new * chance for old, new in zip(without, with_it)]
