"""The site's images that a person may not start, recognised in a file by whatever name it has.

A link, a bind mount and `..` lead to the same device and inode. Other mounts of the file, and
copies, have the same id in their SIF header. What was built again, or whose header was changed, is
another image.
"""

from __future__ import annotations

import os

from portal.node.batch.image import ImageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ID = 48
"""Where the header has its id, of 16 bytes."""


class SiteFile:
    """A file of one of the site's images, and why it is refused."""

    __slots__ = ("id", "path", "reason")

    def __init__(self, path: str, id: str, reason: str) -> None:
        self.path = path
        self.id = id
        """That of its header, in hexadecimal; "" if it is unknown."""
        self.reason = reason


def check(descriptor: int, name: str, refused: Iterable[SiteFile]) -> None:
    """Refuse an open SIF file that is one of these; raises ImageError."""
    facts, id = os.fstat(descriptor), os.pread(descriptor, 16, _ID).hex()
    for file in refused:
        if (file.id and file.id == id) or _is(file.path, facts):
            raise ImageError(f"{name} is one of the site's images: {file.reason}")


def _is(path: str, facts: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), facts)
    except OSError:
        return False
