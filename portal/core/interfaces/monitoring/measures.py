"""Interfaces for monitoring the portal: heartbeats, counts and metrics."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Protocol

from portal.core.monitoring import Figures, Room


class HeartbeatStore(Protocol):
    """When something last gave a sign of life. Every method is one transaction."""

    def beat(self, name: str, now: datetime) -> None:
        """Store a sign of life; raises DatabaseUnavailable, as DatabaseFull if it is full."""
        ...

    def beats(self) -> dict[str, datetime]:
        """The last sign of each, by name."""
        ...


class FigureStore(Protocol):
    """What the database tells in numbers."""

    def figures(self) -> Figures:
        """Sessions by state, revocations that HAProxy has not confirmed, and jobs in the queue."""
        ...


class Measures(Protocol):
    """Metrics of the portal's actions, over all its processes. Never raises."""

    def login(self, outcome: str) -> None:
        """Count an attempt to log in: "ok", "refused" or "limited"."""
        ...

    def launch(self, phase: str, seconds: float) -> None:
        """Record the duration of a phase of a session's start: "submit", "queue" or "start"."""
        ...

    def command(self, name: str, outcome: str, seconds: float) -> None:
        """Record a Slurm command: "ok", "failed" by its exit status, or "unanswered"."""
        ...

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request, by the template of its route."""
        ...


class Disk(Protocol):
    """Free space on the portal's disks."""

    def __call__(self, folder: Path) -> Room:
        """The space in a folder's file system; raises OSError."""
        ...
