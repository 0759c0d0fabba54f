"""Permissions, extended attributes and times of copies.

Group, access control list and permissions are those that the folder gives (access/inheritance.py);
attributes and times are those of the source. So access that was given to one folder is not copied
with its files.
"""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.access.inheritance import Inheritance
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.replacing import keep_attributes


def create_copy(folder: int, name: bytes, source: OpenFile, given: Inheritance) -> int:
    """Create the copy of a file, for writing; raises OSError."""
    return at.create(folder, name, given.mode(source))


def keep(source: OpenFile, target: int, given: Inheritance) -> None:
    """Complete an open copy, and the mode of a folder, which was 0700 until now."""
    status = source.status
    if source.is_folder:
        keep_mode(target, given.mode(source), given)
    given.give_entries(OpenFile(target, (), os.fstat(target)))
    keep_attributes(source.descriptor, target, acls=False)
    with contextlib.suppress(OSError):
        at.set_times(target, status.st_atime_ns, status.st_mtime_ns)


def keep_mode(folder: int, mode: int, given: Inheritance) -> None:
    """Give an open new folder these permissions, as far as its parent permits; raises OSError."""
    inherited = os.fstat(folder).st_mode & stat.S_ISGID
    os.fchmod(folder, mode & given.permitted | inherited)


def keep_link(folder: int, name: bytes, status: os.stat_result) -> None:
    """Give a link the times of its source."""
    with contextlib.suppress(OSError), at.opened(folder, name, at.PATH) as opened:
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            at.set_times(opened, status.st_atime_ns, status.st_mtime_ns)
