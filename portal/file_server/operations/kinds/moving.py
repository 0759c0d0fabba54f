"""Moves: a rename in one file system, otherwise a copy after which the original is deleted."""

from __future__ import annotations

import errno
import os
import stat

from portal.file_server.errors import Refused
from portal.file_server.location import Location, shown
from portal.file_server.operations.kinds.copying import Seen, copy
from portal.file_server.operations.kinds.deleting import delete
from portal.file_server.operations.kinds.placing import Destination
from portal.file_server.operations.operation import Operation
from portal.file_server.operations.protected import Protected
from portal.file_server.renames import sync
from portal.file_server.roots import Place
from portal.file_server.tree.tree import identity


def move(
    operation: Operation, item: Location, place: Place, to: Destination, protected: Protected
) -> None:
    """Move what lies at a place; raises Refused, OSError, Cancelled."""
    operation.current = shown(item.name)
    status = place.status()
    if stat.S_ISDIR(status.st_mode):
        protected.check(identity(status), shown(item.name))
    here = identity(os.fstat(place.folder)) == identity(os.fstat(to.folder))
    if here:  # it is where it shall be
        return
    if to.refuses(place, item.name):
        return
    try:
        to.put(place.folder, place.name, item.name)
        operation.files += 1
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_by_copy(operation, item, place, to, protected)


def _move_by_copy(
    operation: Operation, item: Location, place: Place, to: Destination, protected: Protected
) -> None:
    problems = operation.problem_count
    seen = Seen()
    if not copy(operation, item, place, to, seen):
        return
    if operation.problem_count > problems:
        raise Refused(
            409, "incomplete", "Not all of it could be copied, so the original remains as well."
        )
    sync(to.folder)
    delete(operation, item, place, protected, seen)
