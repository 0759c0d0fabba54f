"""Recognise the site's images that a user may not start, whatever a file's name is.

A link, a bind mount and `..` lead to the same device and inode. Other mounts of the file, and
copies, have the same id in their SIF header. A rebuilt image, or one with a changed header, counts
as another image.
"""

from __future__ import annotations

import os

from portal.node.batch.image import ImageError
from portal.node.common.sif import ID_OFFSET, ID_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class SiteFile:
    """A file of one of the site's images, and why it is refused."""

    __slots__ = ("id", "path", "reason")

    def __init__(self, path: str, id: str, reason: str) -> None:
        self.path = path
        self.id = id
        """The id in its header, in hexadecimal; "" if unknown."""
        self.reason = reason


def check(descriptor: int, name: str, refused: Iterable[SiteFile]) -> None:
    """Refuse an open SIF file that is one of these; raises ImageError."""
    status, id = os.fstat(descriptor), os.pread(descriptor, ID_SIZE, ID_OFFSET).hex()
    for file in refused:
        if (file.id and file.id == id) or _is(file.path, status):
            raise ImageError(f"{name} is one of the site's images: {file.reason}")


def _is(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), status)
    except OSError:
        return False
