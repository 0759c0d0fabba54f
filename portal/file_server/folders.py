"""Creates, renames and changes single files and folders."""

from __future__ import annotations

import os
import re
import stat

from portal.file_server.entries import entry
from portal.file_server.errors import Refused
from portal.file_server.roots import O_PATH, Roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from portal.file_server.location import Location

MODE = re.compile(r"0?[0-7]{3}")


def make(roots: Roots, location: Location) -> dict[str, Any]:
    """Create a folder; returns its entry."""
    with roots.place(location, follow=False) as place:
        os.mkdir(place.name, 0o777, dir_fd=place.folder)
    return entry(roots, location)


def set_mode(roots: Roots, location: Location, mode: str) -> dict[str, Any]:
    """Change the permissions of a file or folder, never of what a link leads to."""
    if not MODE.fullmatch(mode):
        raise Refused(422, "value", "Write the permissions as three digits, such as 640.", "mode")
    with roots.place(location, follow=False) as place:
        change_mode(place.folder, place.name, int(mode, 8))
    return entry(roots, location)


def change_mode(folder: int, name: bytes, mode: int) -> None:
    """chmod for a name in an open directory; raises Refused for a link, and OSError."""
    # Linux has no chmod that follows no link; a descriptor cannot be exchanged meanwhile.
    found = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if stat.S_ISLNK(os.fstat(found).st_mode):
            raise Refused(409, "link", "Links have no permissions of their own.")
        os.chmod(f"/proc/self/fd/{found}", mode)
    finally:
        os.close(found)
