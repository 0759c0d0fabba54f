"""Readiness of the portal, for each of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from portal.core.cluster.usage import SlurmStatus
from portal.core.hosts import HostStatus

READY_WITHIN = timedelta(seconds=30)
"""Maximum age of the worker's last heartbeat, and of its last poll of Slurm."""
WORKER, LOOK, PROBE = "worker", "look", "probe"
"""Names of heartbeats: the worker's process, its last poll of Slurm, the write test."""


@dataclass(frozen=True)
class Room:
    """Space of a file system: bytes and inodes; `inodes` is 0 where they are not counted."""

    free: int
    total: int
    free_inodes: int = 0
    inodes: int = 0


@dataclass(frozen=True)
class Figures:
    """Counts from the database."""

    sessions: Mapping[str, int] = field(default_factory=dict)
    """Sessions by state."""
    revocations: int = 0
    """Routes that were revoked and that HAProxy has not confirmed to be gone."""
    jobs: int = 0
    """Jobs of Slurm's queue that the portal follows."""


@dataclass(frozen=True)
class Part:
    """A part of the portal, and whether it works."""

    name: str
    ok: bool
    text: str
    """Details for administrators, without secrets."""


@dataclass(frozen=True)
class Snapshot:
    """The portal's state at one moment; ages in seconds, None if unknown."""

    version: str
    parts: tuple[Part, ...]
    figures: Figures | None
    """None if the database does not answer."""
    worker: float | None
    look: float | None
    slurm: float | None
    certificates: Mapping[str, float]
    """Remaining days, by file name; negative if it has expired."""
    room: Room | None
    nodes: Mapping[str, int] = field(default_factory=dict)
    """The cluster's nodes: how many are "usable", and how many "unusable"; {} if not known yet."""


def seconds_since(moment: datetime | None, now: datetime) -> float | None:
    """The age of a heartbeat, never negative; None without one."""
    return None if moment is None else max((now - moment).total_seconds(), 0.0)


def worker_part(beats: Mapping[str, datetime], now: datetime) -> Part:
    """Status of the worker's process."""
    age = seconds_since(beats.get(WORKER), now)
    if age is None:
        return Part(WORKER, False, "has not run yet with this database")
    if age > READY_WITHIN.total_seconds():
        return Part(WORKER, False, f"not running: its last sign of life is {age:.0f} s old")
    return Part(WORKER, True, f"last sign of life {age:.0f} s ago")


def slurm_part(status: SlurmStatus, beats: Mapping[str, datetime], now: datetime) -> Part:
    """Status of Slurm, as the worker sees it."""
    look = seconds_since(beats.get(LOOK), now)
    if not worker_part(beats, now).ok:
        return Part("slurm", False, "not known: the worker, which looks at it, is not running")
    if look is None or look > READY_WITHIN.total_seconds():
        since = "no look yet" if look is None else f"the last look ended {look:.0f} s ago"
        return Part("slurm", False, f"{since}: the worker waits for Slurm's answer")
    if status.failing_since is not None:
        return Part("slurm", False, f"no answer since {status.failing_since:%Y-%m-%dT%H:%M:%SZ}")
    return Part("slurm", True, f"answered {look:.0f} s ago")


def host_part(name: str, hosts: Iterable[HostStatus]) -> Part:
    """Status of this portal host, one of several: whether it serves apps."""
    status = next((host for host in hosts if host.name == name), None)
    if status is None:
        return Part("host", False, f"{name} has not followed the database yet; see slipway-worker")
    if not status.is_open:
        text = f"{name} is shut off from apps: it has been silent for {status.silent:.0f} s"
        return Part("host", False, f"{text}; see its slipway-worker")
    return Part("host", True, f"{name} follows the database")


def disk_part(room: Room, needed_mb: int) -> Part:
    """Status of the state directory's file system."""
    text = f"{room.free >> 20} MiB of {room.total >> 20} MiB free"
    if room.free >> 20 < needed_mb:
        return Part("disk", False, f"{text}; monitoring.free_mb asks for {needed_mb}")
    if room.inodes and not room.free_inodes:
        return Part("disk", False, "no inodes are free")
    return Part("disk", True, text)


def summary(parts: Iterable[Part]) -> str:
    """One public line: "ok", or the names of the parts that are not ready."""
    failing = [part.name for part in parts if not part.ok]
    return f"not ready: {', '.join(failing)}" if failing else "ok"
