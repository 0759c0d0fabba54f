"""Moves: a rename in one file system, otherwise a copy after which the original is deleted."""

from __future__ import annotations

import errno
import os

from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, shown
from portal.node.file_server.operations.kinds.copying import Seen, copy
from portal.node.file_server.operations.kinds.deleting import delete
from portal.node.file_server.operations.kinds.leaving import leaving
from portal.node.file_server.operations.kinds.placing import Destination
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.renames import sync
from portal.node.file_server.roots import Place
from portal.node.file_server.tree.tree import identity


def move(
    operation: Operation, item: Location, place: Place, to: Destination, protected: Protected
) -> None:
    """Move what lies at a place; raises Refused, OSError, Cancelled."""
    operation.current = shown(item.name)
    name = to.name or item.name
    source, target = os.fstat(place.folder), os.fstat(to.folder)
    if name == place.name and identity(source) == identity(target):  # it is where it shall be
        return
    with protected.moving(place.folder, place.name):
        if to.refuses(place, name):
            return
        if source.st_dev != target.st_dev or not _rename(place, to, name, protected):
            _move_by_copy(operation, item, place, to, protected)
        else:
            operation.files += 1


def _rename(place: Place, to: Destination, name: bytes, protected: Protected) -> bool:
    """Whether it is there now; False if that is another file system."""
    try:
        with leaving(protected, place, to.folder) as arrived:
            arrived(to.put(place.folder, place.name, name))
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


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
