"""Check that other users' mounted folders are those that the job's script has checked.

Their owners can replace them at any moment, for example by a link to one of this user's folders,
and Apptainer mounts whatever then has the path. A mounted folder cannot be replaced any more.
"""

from __future__ import annotations

import os

from .namespace import NotGranted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def check(folders: Iterable[str]) -> None:
    """Compare each "DEVICE:INODE PATH" with the folder at the path; raise NotGranted."""
    for folder in folders:
        identity, _, path = folder.partition(" ")
        try:
            status = os.lstat(path)
        except OSError:
            status = None
        if status is None or f"{status.st_dev}:{status.st_ino}" != identity:
            name = "".join(c if c.isprintable() else "?" for c in path)
            raise NotGranted(
                f"the shared folder {name} was replaced while it was being mounted. Launch "
                "again, or without it."
            )
