"""The files of the site's images, with the ids by which copies of them are recognised."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from portal.adapters.images.folder import LINK, current_file, read_inventory
from portal.core.images.sif import HEADER, id_of_digest, id_of_header
from portal.core.launch.site_files import SifFile

Version = tuple[int, int]


class SifFiles:
    """The SIF files in images' folders; a file's header is read again only when it has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, dict[Path, tuple[Version, str]]] = {}

    def __call__(self, folder: Path) -> tuple[SifFile, ...]:
        """Those of one image, also files that were replaced."""
        before = self._known.get(folder, {})
        found = {}
        for file in sorted({folder / LINK, *folder.glob("*.sif")}):
            version = _version(file)
            known = before.get(file)
            found[file] = known if known and known[0] == version else (version, _id(file))
        self._known[folder] = found
        return tuple(SifFile(str(file), id) for file, (_, id) in found.items())


def _version(file: Path) -> Version:
    try:
        facts = file.stat()
    except OSError:
        return 0, 0
    return facts.st_ino, facts.st_ctime_ns  # changed by new permissions as well


def _id(file: Path) -> str:
    """From the header, or from the inventory where the portal may not read the file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        named = current_file(file.parent) if file.name == LINK else file
        inventory = read_inventory(named)
        return id_of_digest(inventory.digest) if inventory else ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return id_of_header(os.pread(descriptor, HEADER.size, 0))
    finally:
        os.close(descriptor)
