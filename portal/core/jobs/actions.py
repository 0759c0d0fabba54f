"""What can be done to jobs, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class JobAction(StrEnum):
    """What the owner of a job, or an administrator, can do to it."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"


@dataclass(frozen=True)
class JobOutcome:
    """What became of an action on one job."""

    id: str
    """The number as it was given: of a record, or of an array."""
    done: bool
    text: str
    """In words, for pages: "Cancelled.", "Job 12 has ended already."."""
