"""Interfaces for watching the portal: signs of life, figures, and what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from portal.core.monitoring import Room


class Measures(Protocol):
    """Counts and times what the portal does, over all its processes. Never raises."""

    def login(self, outcome: str) -> None:
        """Count an attempt to log in: "ok", "refused" or "limited"."""
        ...

    def launch(self, phase: str, seconds: float) -> None:
        """Note how long a phase of a session's start took: "submit", "queue" or "start"."""
        ...

    def command(self, name: str, outcome: str, seconds: float) -> None:
        """Note a command of Slurm's: "ok", "failed" by its exit status, or "unanswered"."""
        ...

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note a request, by the template of its route."""
        ...


class Disk(Protocol):
    """Room on the portal's disks."""

    def __call__(self, folder: Path) -> Room:
        """The room in a folder's file system; raises OSError."""
        ...
