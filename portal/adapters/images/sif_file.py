"""SIF files on this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

from portal.core.images.sif import MOST_BYTES, primary_partition, without_times

_PIECE = 1 << 20


def settle(file: Path, epoch: int) -> None:
    """Remove data that differs between two builds of the same sources from a SIF file."""
    digest = digest_of(file)
    with file.open("r+b") as image:
        head = image.read(MOST_BYTES)
        image.seek(0)
        image.write(without_times(head, digest, epoch))


def digest_of(file: Path) -> str:
    """SHA-256 of an image's file system; raises ImageError."""
    digest = hashlib.sha256()
    with file.open("rb") as image:
        offset, remaining = primary_partition(image.read(MOST_BYTES))
        image.seek(offset)
        while remaining > 0 and (piece := image.read(min(remaining, _PIECE))):
            digest.update(piece)
            remaining -= len(piece)
    return digest.hexdigest()
