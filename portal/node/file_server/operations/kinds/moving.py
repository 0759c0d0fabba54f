"""Moves: a rename within one file system, otherwise a copy before the original is deleted."""

from __future__ import annotations

import contextlib
import errno
import os

from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, shown
from portal.node.file_server.operations.kinds.arriving import arrive
from portal.node.file_server.operations.kinds.copying import CopiedFiles, copy, given_by
from portal.node.file_server.operations.kinds.deleting import delete
from portal.node.file_server.operations.kinds.leaving import leaving
from portal.node.file_server.operations.kinds.placing import Destination
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.renames import sync
from portal.node.file_server.roots import Dentry
from portal.node.file_server.tree.tree import identity


def move(
    operation: Operation, item: Location, dentry: Dentry, to: Destination, protected: Protected
) -> None:
    """Move a file or tree; raises Refused, OSError, Cancelled."""
    operation.current = shown(item.name)
    name = to.name or item.name
    source, target = os.fstat(dentry.folder), os.fstat(to.folder)
    if name == dentry.name and identity(source) == identity(target):  # it is already there
        return
    with protected.moving(dentry.folder, dentry.name):
        if to.refuses(dentry, name):
            return
        if source.st_dev != target.st_dev or not _rename(operation, dentry, to, name, protected):
            _move_by_copy(operation, item, dentry, to, protected)
        else:
            operation.files += 1


def _rename(
    operation: Operation, dentry: Dentry, to: Destination, name: bytes, protected: Protected
) -> bool:
    """Rename; returns False if the destination is on another file system."""
    given, before = given_by(to.folder), None
    with contextlib.suppress(Refused):
        before = given_by(dentry.folder)
    try:
        with leaving(protected, dentry, to.folder) as arrived:
            final = to.put(dentry.folder, dentry.name, name)
            has_left = arrived(final)
        if final is not None and (has_left or given != before):
            arrive(operation, to.folder, final, given)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _move_by_copy(
    operation: Operation, item: Location, dentry: Dentry, to: Destination, protected: Protected
) -> None:
    problems = operation.problem_count
    copied = CopiedFiles()
    if not copy(operation, item, dentry, to, copied):
        return
    if operation.problem_count > problems:
        raise Refused(
            409, "incomplete", "Not all of it could be copied, so the original remains as well."
        )
    sync(to.folder)
    delete(operation, item, dentry, protected, copied)
