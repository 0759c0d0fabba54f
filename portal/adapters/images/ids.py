"""The files of the site's images, with the ids by which copies of them are recognised."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from portal.adapters.images.folder import LINK, current_file, read_inventory
from portal.core.images.sif import id_of_digest, id_of_header
from portal.core.launch.site_files import SifFile
from portal.node.common.sif import HEADER

Version = tuple[int, int]
_UNKNOWN: Version = (0, 0)


class SifFiles:
    """The SIF files in images' folders; a file's header is read again only when it has changed.

    What the file system does not tell, for an error of it, is as it was before, or unknown.
    """

    def __init__(self) -> None:
        self._known: dict[Path, dict[Path, tuple[Version, str]]] = {}

    def __call__(self, folder: Path) -> tuple[SifFile, ...]:
        """Those of one image, also files that were replaced."""
        before = self._known.get(folder, {})
        found = {}
        for file in _listed(folder, before):
            version, (last, id) = _version(file), before.get(file, (_UNKNOWN, ""))
            unchanged = id and version in (last, _UNKNOWN)
            found[file] = (last, id) if unchanged else (version, _id(file))
        self._known[folder] = found
        return tuple(SifFile(str(file), id) for file, (_, id) in found.items())


def _listed(folder: Path, before: Iterable[Path]) -> list[Path]:
    try:
        found = set(folder.glob("*.sif"))
    except OSError:
        found = set(before)
    if os.path.lexists(folder / LINK):  # also in a folder that cannot be listed
        found.add(folder / LINK)
    return sorted(found)


def _version(file: Path) -> Version:
    try:
        facts = file.stat()
    except OSError:
        return _UNKNOWN
    return facts.st_ino, facts.st_ctime_ns  # changed by new permissions as well


def _id(file: Path) -> str:
    """From the header, or from the inventory where the portal cannot read the file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return id_of_header(os.pread(descriptor, HEADER.size, 0))
        finally:
            os.close(descriptor)
    except OSError:
        named = current_file(file.parent) if file.name == LINK else file
        inventory = read_inventory(named)
        return id_of_digest(inventory.digest) if inventory else ""
