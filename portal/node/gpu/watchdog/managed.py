"""Detect managed memory that bypasses the shim and is missing in the driver's figures of processes.

NVML's figure of a process lacks its managed (UVM) memory, but the GPU's total includes it. If the
two differ, the kernel shows the possible causes: managed memory is a mapping of /dev/nvidia-uvm in
the process, however its library was loaded. Any part of a mapping may be in the host's memory, so a
job is blamed only for bytes that no other process can hold, which prove that it exceeds its limit.
A session behind the shim is never blamed, since its managed memory is charged in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """Bytes of a GPU that a job holds by the driver's figures, and its limit."""

    used: int
    most: int


def hidden(used: int | None, sizes: Mapping[int, int]) -> int:
    """Return the bytes in use on a GPU that are in no process's figure; 0 if unknown."""
    if used is None or not all(sizes.values()):
        return 0  # a driver without these figures, or a process without one
    return max(0, used - sum(sizes.values()))


def to_blame(lost: int, mapped: Mapping[int | None, int], jobs: Mapping[int, Holder]) -> set[int]:
    """Return the jobs that certainly exceed their limits; `mapped` is by job, None for others."""
    total = sum(mapped.values())
    blamed = set()
    for number, job in jobs.items():
        mapped_here = mapped.get(number, 0)
        certain = min(mapped_here, lost - (total - mapped_here))
        if certain > 0 and job.used + certain > job.most:
            blamed.add(number)
    return blamed
