"""The lock that lets one watchdog run on a node."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from stat import S_IMODE
from typing import TextIO

from portal.node.gpu import slices


def lock(jobs: Path = slices.JOBS, seconds: float = 0) -> TextIO | None:
    """Lock out other watchdogs of this node while the file is open; None if one holds the lock.

    Retries for `seconds`. The file is in a folder that users cannot enter, since anyone who can
    open it can lock it. Raises OSError.
    """
    deadline = time.monotonic() + seconds
    while (lock_file := _try_lock(jobs)) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return lock_file


def _try_lock(jobs: Path) -> TextIO | None:
    folder = jobs.parent / "watch"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / "lock"
    if not _is_private(folder):
        # A user may hold a lock on it: the file is replaced, so that this lock has no effect.
        folder.chmod(0o700)
        file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    (jobs.parent / "watch.lock").unlink(missing_ok=True)  # the lock of earlier versions
    return os.fdopen(descriptor, "w")


def _is_private(folder: Path) -> bool:
    """Whether only its owner can enter a folder; raises OSError if that is not this user."""
    status = folder.lstat()
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "is not root's", str(folder))
    return S_IMODE(status.st_mode) & 0o077 == 0


def is_running(jobs: Path = slices.JOBS) -> bool:
    """Whether a watchdog holds the lock; raises OSError without permission to check."""
    lock_file = lock(jobs)
    if lock_file is not None:
        lock_file.close()
    return lock_file is None
