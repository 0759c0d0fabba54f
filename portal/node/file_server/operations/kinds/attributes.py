"""Permissions, extended attributes and times of copies.

A copy belongs to its new folder, which gives it its group, its access control list, and at most the
permissions that it gives to all. Of its source it has the permissions (as with `cp`), attributes
and times. So access that was given to one folder does not travel with copies of it.
"""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.replacing import PERMISSIONS, keep_attributes
from portal.node.file_server.storage import posix_acl

_UMASK = os.umask(0o077)
os.umask(_UMASK)


def create_copy(folder: int, name: bytes, status: os.stat_result) -> int:
    """Create the copy of a file, for writing; raises OSError."""
    return at.create(folder, name, status.st_mode & PERMISSIONS)


def keep(source: int, target: int, status: os.stat_result) -> None:
    """Give an open copy what it keeps of its source; a folder was made with 0700 for that long."""
    if stat.S_ISDIR(status.st_mode):
        inherited = os.fstat(target).st_mode & stat.S_ISGID
        os.fchmod(target, status.st_mode & _permitted(target) | inherited)
    keep_attributes(source, target, acls=False)
    with contextlib.suppress(OSError):
        at.set_times(target, status.st_atime_ns, status.st_mtime_ns)


def keep_link(folder: int, name: bytes, status: os.stat_result) -> None:
    """Give a link the times of its source."""
    with contextlib.suppress(OSError), at.opened(folder, name, at.PATH) as opened:
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            at.set_times(opened, status.st_atime_ns, status.st_mtime_ns)


def _permitted(folder: int) -> int:
    """The permissions that new folders get at most: of the inherited list, or by the umask."""
    with contextlib.suppress(OSError, ValueError):
        inherited = posix_acl.read(at.descriptor_path(folder), posix_acl.DEFAULT)
        if inherited is not None:
            group = inherited.group if inherited.mask is None else inherited.mask
            return inherited.owner << 6 | group << 3 | inherited.other
    return PERMISSIONS & ~_UMASK
