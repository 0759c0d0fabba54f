"""What is moved out of a storage folder: others' access by the folder's shares ends before.

A rename keeps access control lists, so it would take access along to where no list shows it.
"""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import shown
from portal.node.file_server.operations.protected import Protected, above
from portal.node.file_server.roots import Place
from portal.node.file_server.storage.schemes import scheme_of, shared_with
from portal.node.file_server.storage.subjects import Subject
from portal.node.file_server.storage.walk import Found, walk
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Arrived = Callable[[bytes | None], None]

MOST_WALKS = 10


@contextlib.contextmanager
def leaving(protected: Protected, place: Place, to: int) -> Iterator[Arrived]:
    """For the rename of what lies at a place into an open directory.

    Yields what gets the new name afterwards. Raises Refused or OSError, then nothing is renamed.
    """
    with protected.storage_folder(place.folder) as folder:
        subjects: set[Subject] = set()
        if folder is not None and identity(os.fstat(folder)) not in above(to):
            subjects = shared_with(Found(folder, (), os.fstat(folder)))
        if subjects:
            _end_access(place.folder, place.name, subjects)
        yield lambda name: _end_rest(to, name, subjects)


def _end_rest(folder: int, name: bytes | None, subjects: set[Subject]) -> None:
    """Walk until nothing is left: others may have exchanged or added something meanwhile."""
    if name is None or not subjects:
        return
    for _ in range(MOST_WALKS):
        try:
            if not _end_access(folder, name, subjects):
                return
        except FileNotFoundError:
            return
    raise Refused(409, "changed", f"“{shown(name)}” is changed all the time by somebody else.")


def _end_access(folder: int, name: bytes, subjects: set[Subject]) -> bool:
    """End access to what is the user's own; returns whether there was any."""
    with at.opened(folder, name, at.PATH) as opened:
        item = Found(opened, (), os.fstat(opened))
        if not item.is_folder and not stat.S_ISREG(item.status.st_mode):
            return False
        try:
            return _revoke(item, subjects)
        except ValueError:
            detail = "An access control list in it is not understood."
            raise Refused(409, "share", detail) from None


def _revoke(item: Found, subjects: set[Subject]) -> bool:
    scheme, changed = scheme_of(item), False
    for file in _files(item):
        if file.status.st_uid == os.geteuid():
            for subject in subjects:
                changed |= scheme.revoke(file, subject)
    return changed


def _files(item: Found) -> Iterator[Found]:
    """It and all that is in it; raises Refused if a folder of the user's cannot be looked into."""
    if not item.is_folder:
        yield item
        return
    if item.status.st_uid != os.geteuid() and not at.may(item.descriptor, os.R_OK | os.X_OK):
        return
    problems: list[Found] = []
    yield from walk(item.descriptor, problems)
    for found in problems:
        if found.status.st_uid == os.geteuid():
            words = "cannot be looked into, so others' access to it cannot be ended."
            raise Refused(409, "share", f"“{shown(found.names[-1])}” {words}")
