"""Interfaces for monitoring the portal: heartbeats, counts and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from portal.core.monitoring import Room


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
