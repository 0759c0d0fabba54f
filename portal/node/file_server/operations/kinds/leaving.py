"""Moves out of a storage folder, which first end the access that its shares give.

A rename keeps access control lists, so access would remain without being listed as a share.
"""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.access.schemes import scheme_of, shared_with
from portal.node.file_server.access.subjects import Subject
from portal.node.file_server.access.walk import OpenFile, walk
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import shown
from portal.node.file_server.operations.protected import Protected, above
from portal.node.file_server.roots import Dentry
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Arrived = Callable[[bytes | None], bool]

MOST_WALKS = 10


@contextlib.contextmanager
def leaving(protected: Protected, dentry: Dentry, to: int) -> Iterator[Arrived]:
    """End others' access around the rename of a file into an open directory.

    Yields a function to call with the new name afterwards, which returns whether anybody had
    access. Raises Refused or OSError before.
    """
    with protected.storage_folder(dentry.folder) as folder:
        subjects: set[Subject] = set()
        if folder is not None and identity(os.fstat(folder)) not in above(to):
            subjects = shared_with(OpenFile(folder, (), os.fstat(folder)))
        if subjects:
            _end_access(dentry.folder, dentry.name, subjects)
        yield lambda name: _end_remaining(to, name, subjects)


def _end_remaining(folder: int, name: bytes | None, subjects: set[Subject]) -> bool:
    """Walk until no access is left: other users may have exchanged or added files meanwhile."""
    if name is None or not subjects:
        return False
    for _ in range(MOST_WALKS):
        try:
            if not _end_access(folder, name, subjects):
                return True
        except FileNotFoundError:
            return True
    raise Refused(409, "changed", f"“{shown(name)}” is changed all the time by somebody else.")


def _end_access(folder: int, name: bytes, subjects: set[Subject]) -> bool:
    """End access to the user's own files; returns whether there was any."""
    with at.opened(folder, name, at.PATH) as opened:
        item = OpenFile(opened, (), os.fstat(opened))
        if not item.is_folder and not stat.S_ISREG(item.status.st_mode):
            return False
        try:
            return _revoke(item, subjects)
        except ValueError:
            detail = "An access control list in it is not understood."
            raise Refused(409, "share", detail) from None


def _revoke(item: OpenFile, subjects: set[Subject]) -> bool:
    scheme, changed = scheme_of(item), False
    for file in _files(item):
        if file.status.st_uid == os.geteuid():
            for subject in subjects:
                changed |= scheme.revoke(file, subject)
    return changed


def _files(item: OpenFile) -> Iterator[OpenFile]:
    """Yield a file or tree; raises Refused if a folder of the user's cannot be read."""
    if not item.is_folder:
        yield item
        return
    if item.status.st_uid != os.geteuid() and not at.may(item.descriptor, os.R_OK | os.X_OK):
        return
    problems: list[OpenFile] = []
    yield from walk(item.descriptor, problems)
    for folder in problems:
        if folder.status.st_uid == os.geteuid():
            words = "cannot be looked into, so others' access to it cannot be ended."
            raise Refused(409, "share", f"“{shown(folder.names[-1])}” {words}")
