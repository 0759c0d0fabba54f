"""Trees for WebDAV: the portal's operations, which end here with the first problem."""

from __future__ import annotations

import contextlib
import os

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location
from portal.node.file_server.operations.kinds import copying, deleting, moving
from portal.node.file_server.operations.kinds.attributes import keep
from portal.node.file_server.operations.kinds.placing import Destination
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.operations.request import COPY, DELETE, MOVE, REFUSE, REPLACE
from portal.node.file_server.roots import Place


class _Strict(Operation):
    """An operation whose first problem is its answer."""

    def note(self, location: Location, error: Refused) -> None:
        """Raise it."""
        raise error

    def problem(self, location: Location, detail: str) -> None:
        """Raise it."""
        raise Refused(409, "changed", detail)


def _begin(
    kind: str, source: Place, target: Place, protected: Protected, *, replace: bool
) -> tuple[_Strict, Destination]:
    conflict = REPLACE if replace else REFUSE
    operation = _Strict(kind, (source.location,), target.location.parent, conflict)
    return operation, Destination(operation, target.folder, protected, target.name)


def remove(place: Place, protected: Protected) -> None:
    """Delete a file, link or folder with all that it contains; raises Refused or OSError."""
    place.status()  # an operation does not mind if there is nothing
    deleting.delete(_Strict(DELETE, (place.location,)), place.location, place, protected)


def move(source: Place, target: Place, protected: Protected, *, replace: bool) -> None:
    """Move a file or folder, to another file system by copying; raises Refused or OSError."""
    operation, to = _begin(MOVE, source, target, protected, replace=replace)
    moving.move(operation, source.location, source, to, protected)


def copy(source: Place, target: Place, protected: Protected, *, replace: bool) -> None:
    """Copy a file or folder; it appears when it is complete. Raises Refused or OSError."""
    operation, to = _begin(COPY, source, target, protected, replace=replace)
    copying.copy(operation, source.location, source, to)


def copy_folder_alone(source: Place, target: Place) -> None:
    """Copy a folder without what it contains; raises OSError or Refused."""
    at.make_folder(target.folder, target.name, 0o700)
    with contextlib.ExitStack() as stack:
        folders = []
        for place in (source, target):
            folders.append(at.open_at(place.folder, place.name, at.READ_FOLDER))
            stack.callback(os.close, folders[-1])
        copying.check_new(folders[1])
        keep(folders[0], folders[1], os.fstat(folders[0]))
