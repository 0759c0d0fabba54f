"""A small file system in memory for what a job's user may write, so that nobody fills `/run`.

A file on `/run` could grow until nobody else's job finds room there; on a file system of its own it
ends where that ends.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

# From mount.h.
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8
INODES = 8
"""Root's folder and one file need two; the rest is what attributes of a file may take."""


def mount(place: Path, size: int) -> None:
    """Mount one of so many bytes on an empty folder that only root can change; raises OSError."""
    options = f"size={size},nr_inodes={INODES},mode=755".encode()
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    library = ctypes.CDLL(None, use_errno=True)
    _must(library.mount(b"slipway", os.fsencode(place), b"tmpfs", flags, options), place)


def unmount(place: Path) -> None:
    """Take it away, also while somebody has a file of it open; again is no fault."""
    if os.path.ismount(place):
        library = ctypes.CDLL(None, use_errno=True)
        _must(library.umount2(os.fsencode(place), MNT_DETACH | UMOUNT_NOFOLLOW), place)


def _must(result: int, place: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(place))
