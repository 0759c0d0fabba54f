"""Who uses which file of an image, and what may be deleted.

A session's job reads the file that the image had when the job was submitted, for as long as Slurm
has the job, requeued ones too. Which image a batch job uses is known to Slurm alone, so each job
that was in the queue before a file was replaced counts as using it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.images.inventory import Inventory
from portal.core.images.names import ImageName
from portal.core.session.session import Session

MARGIN = timedelta(minutes=10)
"""How long a portal or a login node may still name a file that was replaced."""


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
    """When the current file took its place."""
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
    """What `prune` does with an image's files; `kept` says why it keeps any."""

    image: StoredImage
    files: tuple[StoredFile, ...] = ()
    whole: bool = False
    kept: str = ""


def sessions_of(image: ImageName, live: Collection[Session]) -> list[Session]:
    """The sessions that are not over, of this image."""
    return [s for s in live if (s.environment, s.version) == image]


def decide(
    image: StoredImage, live: Collection[Session], jobs: Collection[QueuedJob], now: datetime
) -> Removal | None:
    """What may be deleted of an image; None if there is nothing to delete."""
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
        return Removal(image, kept="; ".join(reasons))
    whole = image.retired is not None
    return Removal(image, image.files if whole else old, whole)


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


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
