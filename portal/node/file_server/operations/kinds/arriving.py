"""Moves into a folder that gives something else than the one before: the files get that.

A rename keeps group, permissions and access control list, so the members of a shared or
set-group-ID folder, and its owner, would be shut out of what comes into it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time

from portal.node.file_server import at
from portal.node.file_server.access.inheritance import Inheritance
from portal.node.file_server.access.walk import OpenFile, walk
from portal.node.file_server.operations.operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def arrive(operation: Operation, folder: int, name: bytes, given: Inheritance) -> None:
    """Give the user's own files, in a file or tree that was moved, what their new folder gives.

    Files that cannot be changed keep what they have. A file with several names is left alone where
    another user could have linked any file of the user's.
    """
    check_links = not at.links_are_protected()
    try:
        with at.opened(folder, name, at.PATH) as opened:
            for file in _files(OpenFile(opened, (), os.fstat(opened))):
                operation.advanced = time.monotonic()
                several = file.status.st_nlink > 1 and not file.is_folder
                if file.status.st_uid == os.geteuid() and not (check_links and several):
                    with contextlib.suppress(OSError, ValueError):
                        given.give(file)
    except FileNotFoundError:
        return  # moved on by somebody else


def _files(item: OpenFile) -> Iterator[OpenFile]:
    if item.is_folder:
        yield from walk(item.descriptor, [])
    elif stat.S_ISREG(item.status.st_mode):
        yield item
