"""Permissions, extended attributes and times of copies.

A copy inherits group and access control list from its new folder, which also limits its
permissions. From its source it has permissions (as with `cp`), attributes and times. So access
that was given to one folder is not copied with its files.
"""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.access import posix_acl
from portal.node.file_server.replacing import PERMISSIONS, keep_attributes

_UMASK = os.umask(0o077)
os.umask(_UMASK)


def create_copy(folder: int, name: bytes, status: os.stat_result) -> int:
    """Create the copy of a file, for writing; raises OSError."""
    return at.create(folder, name, status.st_mode & PERMISSIONS)


def keep(source: int, target: int, status: os.stat_result) -> None:
    """Copy attributes and times to an open copy, and a folder's mode, which was 0700 until now."""
    if stat.S_ISDIR(status.st_mode):
        keep_mode(target, status.st_mode)
    keep_attributes(source, target, acls=False)
    with contextlib.suppress(OSError):
        at.set_times(target, status.st_atime_ns, status.st_mtime_ns)


def keep_mode(folder: int, mode: int) -> None:
    """Give an open new folder these permissions, as far as its parent permits; raises OSError."""
    inherited = os.fstat(folder).st_mode & stat.S_ISGID
    os.fchmod(folder, mode & _permitted(folder) | inherited)


def keep_link(folder: int, name: bytes, status: os.stat_result) -> None:
    """Give a link the times of its source."""
    with contextlib.suppress(OSError), at.opened(folder, name, at.PATH) as opened:
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            at.set_times(opened, status.st_atime_ns, status.st_mtime_ns)


def _permitted(folder: int) -> int:
    """The most permissions of a new folder, by the inherited default list or the umask."""
    with contextlib.suppress(OSError, ValueError):
        inherited = posix_acl.read(at.descriptor_path(folder), posix_acl.DEFAULT)
        if inherited is not None:
            group = inherited.group if inherited.mask is None else inherited.mask
            return inherited.owner << 6 | group << 3 | inherited.other
    return PERMISSIONS & ~_UMASK
