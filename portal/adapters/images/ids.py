"""The files of the site's images, with the SIF ids that identify copies of them."""

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
    """The SIF files in images' folders; a file's header is read again only after a change.

    If the file system fails, the previous result counts; without one, the id is unknown.
    """

    def __init__(self) -> None:
        self._cache: dict[Path, dict[Path, tuple[Version, str]]] = {}

    def __call__(self, folder: Path) -> tuple[SifFile, ...]:
        """The SIF files of one image, including replaced ones."""
        cached = self._cache.get(folder, {})
        files = {}
        for file in _listed(folder, cached):
            version, (last, id) = _version(file), cached.get(file, (_UNKNOWN, ""))
            unchanged = id and version in (last, _UNKNOWN)
            files[file] = (last, id) if unchanged else (version, _id(file))
        self._cache[folder] = files
        return tuple(SifFile(str(file), id) for file, (_, id) in files.items())


def _listed(folder: Path, cached: Iterable[Path]) -> list[Path]:
    try:
        files = set(folder.glob("*.sif"))
    except OSError:
        files = set(cached)
    if os.path.lexists(folder / LINK):  # also in a folder that cannot be listed
        files.add(folder / LINK)
    return sorted(files)


def _version(file: Path) -> Version:
    try:
        status = file.stat()
    except OSError:
        return _UNKNOWN
    return status.st_ino, status.st_ctime_ns  # changed by new permissions as well


def _id(file: Path) -> str:
    """The id from the header, or from the inventory if the portal cannot read the file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return id_of_header(os.pread(descriptor, HEADER.size, 0))
        finally:
            os.close(descriptor)
    except OSError:
        target = current_file(file.parent) if file.name == LINK else file
        inventory = read_inventory(target)
        return id_of_digest(inventory.digest) if inventory else ""
