"""Temporary folders that only their user can enter."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def private_folder() -> Iterator[str]:
    """Create a folder in $TMPDIR, or in /tmp if that is unusable, and delete it afterwards."""
    candidates = [os.environ.get("TMPDIR", ""), "/tmp"]  # noqa: S108
    folder = ""
    for parent in map(os.path.realpath, filter(os.path.isabs, candidates)):
        if parent == "/tmp" or keeps_names(parent):  # noqa: S108 - the site's word
            with contextlib.suppress(OSError):
                folder = tempfile.mkdtemp(prefix="slipway-", dir=parent)
                break
    if not folder:
        raise OSError(f"no folder for temporary files: {' and '.join(filter(None, candidates))}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keeps_names(real: str) -> bool:
    """Whether only this user and root can replace files that this user creates in a folder.

    Users who may write in it, or in a folder above it, could replace our folder by theirs, unless
    the sticky bit is set. `real`: its path without links.
    """
    try:
        while _keeps_names(os.lstat(real)):
            if real == "/":
                return True
            real = os.path.dirname(real)
    except OSError:
        pass
    return False


def _keeps_names(status: os.stat_result) -> bool:
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    return stat.S_ISDIR(status.st_mode) and status.st_uid in (0, os.getuid()) and not shared
