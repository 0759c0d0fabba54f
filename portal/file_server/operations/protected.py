"""Folders that must remain: the storage areas and all folders that lead to them."""

from __future__ import annotations

import functools
import os

from portal.file_server.deadlines import Deadlines
from portal.file_server.errors import Refused
from portal.file_server.roots import O_PATH, Root, Roots
from portal.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    Identity = tuple[int, int]

SECONDS = 2.0
"""For each storage area; one that does not answer cannot be deleted either."""
_FOLDER = O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Protected:
    """The folders that are neither moved nor deleted nor replaced, by identity."""

    def __init__(self, roots: Roots, deadlines: Deadlines) -> None:
        """Look at all storage areas, except those that did not answer a moment ago."""
        self._identities: dict[Identity, str] = {}
        for root in roots:
            if deadlines.is_late(root.name):
                continue
            try:
                found = deadlines.call(root.name, functools.partial(_chain, root), SECONDS)
            except (Refused, OSError):
                continue
            for each in found:
                self._identities.setdefault(each, root.name)

    def check(self, found: Identity, name: str) -> None:
        """Raise Refused if this folder must remain."""
        root = self._identities.get(found)
        if root is not None:
            raise Refused(
                409, "root", f"“{name}” contains the storage area “{root}” and remains.", "items"
            )


def _chain(root: Root) -> list[Identity]:
    folder = os.open(root.path, _FOLDER)
    try:
        return list(above(folder))
    finally:
        os.close(folder)


def above(folder: int) -> dict[Identity, None]:
    """The identities of an open directory and of all that contain it; raises OSError."""
    found: dict[Identity, None] = {}
    current = os.dup(folder)
    try:
        while (own := identity(os.fstat(current))) not in found:
            found[own] = None
            parent = os.open(b"..", _FOLDER, dir_fd=current)
            os.close(current)
            current = parent
    except PermissionError:
        pass  # what lies above cannot be entered from here
    finally:
        os.close(current)
    return found
