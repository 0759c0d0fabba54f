"""A folder that nobody else can enter, for as long as it is needed."""

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
    """A new folder in $TMPDIR, or in /tmp if that is unusable."""
    places = [os.environ.get("TMPDIR", ""), "/tmp"]  # noqa: S108
    folder = ""
    for place in map(os.path.realpath, filter(os.path.isabs, places)):
        if place == "/tmp" or keeps_names(place):  # noqa: S108 - the site's word
            with contextlib.suppress(OSError):
                folder = tempfile.mkdtemp(prefix="slipway-", dir=place)
                break
    if not folder:
        raise OSError(f"no folder for temporary files: {' and '.join(filter(None, places))}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keeps_names(real: str) -> bool:
    """Whether nobody but this user and root can replace what this user creates in a folder.

    Whoever may write in it, or in one above it, could put a folder of theirs in the place of ours,
    unless the sticky bit is set. `real`: its path without links.
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
