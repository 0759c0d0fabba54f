"""Estimates for a launch: how many of its sessions can start right away."""

from __future__ import annotations

from datetime import datetime, timedelta

from portal.core.cluster.job_reports import Estimate
from portal.core.cluster.meters import PartitionUsage
from portal.core.session.session import Session

AT_ONCE = timedelta(seconds=60)
"""A start that Slurm expects within this time counts as one right away."""


def fits_now(use: PartitionUsage | None, session: Session, count: int) -> int | None:
    """How many of `count` such sessions fit into the free resources; None if unknown."""
    if use is None or use.cpus.available is None or use.memory.available is None:
        return None
    counts = [
        count,
        use.cpus.available // session.cpus,
        use.memory.available // session.memory_mb,
    ]
    if session.fgpu:
        if use.fgpu is None or use.fgpu.available is None:
            return None
        # A small allowance: both are decimals of shares.
        counts.append(int(float(use.fgpu.available) / float(session.fgpu) + 1e-9))
    return max(0, min(counts))


def starts_at_once(estimate: Estimate | None, now: datetime) -> bool:
    """Whether Slurm expects a start right away."""
    return bool(estimate and estimate.start and estimate.start - now <= AT_ONCE)
