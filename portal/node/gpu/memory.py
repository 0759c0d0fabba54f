"""A small tmpfs for files that a job's user may write, so that users cannot fill `/run`.

A file on `/run` itself could grow until there is no space for other jobs.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

# From mount.h.
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8
INODES = 8
"""Root's folder and one file need two; extended attributes may need the rest."""


def mount(folder: Path, size: int) -> None:
    """Mount a tmpfs of `size` bytes on an empty folder owned by root; raises OSError."""
    options = f"size={size},nr_inodes={INODES},mode=755".encode()
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    library = ctypes.CDLL(None, use_errno=True)
    _check(library.mount(b"slipway", os.fsencode(folder), b"tmpfs", flags, options), folder)


def unmount(folder: Path) -> None:
    """Unmount the tmpfs, lazily if a file is in use. Idempotent."""
    if os.path.ismount(folder):
        library = ctypes.CDLL(None, use_errno=True)
        _check(library.umount2(os.fsencode(folder), MNT_DETACH | UMOUNT_NOFOLLOW), folder)


def _check(result: int, folder: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
