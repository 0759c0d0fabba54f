"""Managed memory past the shim, which no figure of the driver names.

NVML's figure of a process lacks its managed (UVM) memory, but the GPU's use has it. Where the two
part, the kernel tells who can be the cause: managed memory is a mapping of /dev/nvidia-uvm in the
process, however its library was loaded. Of what is mapped any part may be in the host's memory, so
a job is to blame only for what nobody else can hold: then, whatever else is true, it holds more
than its limit. A session behind the shim never is, since its managed memory is charged in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """What a job holds of a GPU by the driver's figures, and the most that it may hold."""

    held: int
    most: int


def hidden(used: int | None, sizes: Mapping[int, int]) -> int:
    """Bytes in use on a GPU that are in no process's figure; 0 where that cannot be told."""
    if used is None or not all(sizes.values()):
        return 0  # a driver without these figures, or a process without one
    return max(0, used - sum(sizes.values()))


def to_blame(lost: int, mapped: Mapping[int | None, int], jobs: Mapping[int, Holder]) -> set[int]:
    """The jobs that certainly hold more than they may; `mapped` is by job, None are all others."""
    everybodys = sum(mapped.values())
    found = set()
    for number, job in jobs.items():
        own = mapped.get(number, 0)
        certain = min(own, lost - (everybodys - own))
        if certain > 0 and job.held + certain > job.most:
            found.add(number)
    return found
