"""Use of an image's files by sessions and jobs, and which files may be deleted.

A session's job reads the image's file at the time of its submission for as long as Slurm has the
job, also after a requeue. The portal does not know which image a batch job uses, so each job that
was in the queue before a file was replaced counts as using it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.images.inventory import Inventory
from portal.core.images.names import ImageName
from portal.core.session.session import Session

MARGIN = timedelta(minutes=10)
"""How long a portal or a login node may still submit jobs with a replaced file."""


@dataclass(frozen=True)
class StoredFile:
    """One file of an image; the size in bytes."""

    name: str
    size: int
    current: bool


@dataclass(frozen=True)
class StoredImage:
    """An image in the site's folder."""

    name: ImageName
    title: str
    files: tuple[StoredFile, ...]
    changed: datetime
    """When the current file was installed."""
    inventory: Inventory | None = None
    """None for images that were not built by `slipway images build`."""
    retired: datetime | None = None

    @property
    def size(self) -> int:
        """The size of the current file."""
        return sum(file.size for file in self.files if file.current)


@dataclass(frozen=True)
class QueuedJob:
    """A batch job that Slurm has not finished."""

    id: str
    owner: str
    submitted: datetime


@dataclass(frozen=True)
class Removal:
    """The files that `prune` deletes; `kept_because`: why it keeps the image's files."""

    image: StoredImage
    files: tuple[StoredFile, ...] = ()
    entire_image: bool = False
    kept_because: str = ""


def sessions_of(image: ImageName, live: Collection[Session]) -> list[Session]:
    """The live sessions with this image."""
    return [s for s in live if (s.environment, s.version) == image]


def decide(
    image: StoredImage, live: Collection[Session], jobs: Collection[QueuedJob], now: datetime
) -> Removal | None:
    """Decide which files of an image may be deleted; None if there are none to delete."""
    old = tuple(file for file in image.files if not file.current)
    if image.retired is None and not old:
        return None
    since = image.retired or image.changed
    users = sessions_of(image.name, live)
    if image.retired is None:
        users = [s for s in users if s.submitted <= since + MARGIN]
    reasons = list(_reasons(users, [j for j in jobs if j.submitted <= since + MARGIN]))
    if now < since + MARGIN:
        reasons.append(f"{'retired' if image.retired else 'replaced'} less than ten minutes ago")
    if reasons:
        return Removal(image, kept_because="; ".join(reasons))
    retired = image.retired is not None
    return Removal(image, image.files if retired else old, retired)


def _reasons(sessions: Collection[Session], jobs: Collection[QueuedJob]) -> Iterator[str]:
    if sessions:
        owners = ", ".join(sorted({s.owner for s in sessions}))
        yield f"{_count(len(sessions), 'session')} of {owners} may use it"
    if jobs:
        first = min(jobs, key=lambda job: job.submitted)
        yield (
            f"{_count(len(jobs), 'batch job')} submitted before may use it "
            f"(the oldest: {first.id} of {first.owner})"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
