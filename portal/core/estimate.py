"""Slurm's own guess at when a job would start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Estimate:
    """When and where; without a start the reason why there is none."""

    start: datetime | None
    node: str = ""
    reason: str = ""
