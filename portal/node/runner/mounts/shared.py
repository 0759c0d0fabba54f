"""Checks that other users' folders are those that the job's script has looked at.

Their owners can put something else in their place at any moment, such as a link to a folder of this
user's own, and Apptainer mounts whatever then has the path. What is mounted stays.
"""

from __future__ import annotations

import os

from .namespace import NotGranted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def check(folders: Iterable[str]) -> None:
    """Compare each "DEVICE:INODE PLACE" with what is at the place; raise NotGranted."""
    for folder in folders:
        identity, _, place = folder.partition(" ")
        try:
            found = os.lstat(place)
        except OSError:
            found = None
        if found is None or f"{found.st_dev}:{found.st_ino}" != identity:
            name = "".join(c if c.isprintable() else "?" for c in place)
            raise NotGranted(
                f"the shared folder {name} was replaced while it was being mounted. Launch "
                "again, or without it."
            )
