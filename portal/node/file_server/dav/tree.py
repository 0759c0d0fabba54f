"""Copies, moves and deletes for WebDAV: operations that end with their first problem."""

from __future__ import annotations

import contextlib
import os

from portal.node.file_server import at
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location
from portal.node.file_server.operations.kinds import copying, deleting, moving
from portal.node.file_server.operations.kinds.attributes import keep
from portal.node.file_server.operations.kinds.placing import Destination
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.operations.request import COPY, DELETE, MOVE, REFUSE, REPLACE
from portal.node.file_server.roots import Dentry


class _Strict(Operation):
    """An operation that raises its first problem."""

    def note(self, location: Location, error: Refused) -> None:
        """Raise it."""
        raise error

    def problem(self, location: Location, detail: str) -> None:
        """Raise it."""
        raise Refused(409, "changed", detail)


def _begin(
    kind: str, source: Dentry, target: Dentry, protected: Protected, *, replace: bool
) -> tuple[_Strict, Destination]:
    conflict = REPLACE if replace else REFUSE
    operation = _Strict(kind, (source.location,), target.location.parent, conflict)
    return operation, Destination(operation, target.folder, protected, target.name)


def remove(dentry: Dentry, protected: Protected) -> None:
    """Delete a file, link or folder recursively; raises Refused or OSError."""
    dentry.status()  # raises if it does not exist, which an operation ignores
    deleting.delete(_Strict(DELETE, (dentry.location,)), dentry.location, dentry, protected)


def move(source: Dentry, target: Dentry, protected: Protected, *, replace: bool) -> None:
    """Move a file or folder, to another file system by copying; raises Refused or OSError."""
    operation, to = _begin(MOVE, source, target, protected, replace=replace)
    moving.move(operation, source.location, source, to, protected)


def copy(source: Dentry, target: Dentry, protected: Protected, *, replace: bool) -> None:
    """Copy a file or folder, which appears when it is complete; raises Refused or OSError."""
    operation, to = _begin(COPY, source, target, protected, replace=replace)
    copying.copy(operation, source.location, source, to)


def copy_folder_alone(source: Dentry, target: Dentry) -> None:
    """Copy a folder without its contents; raises OSError or Refused."""
    at.make_folder(target.folder, target.name, 0o700)
    with contextlib.ExitStack() as stack:
        folders = []
        for dentry in (source, target):
            folders.append(at.open_at(dentry.folder, dentry.name, at.READ_FOLDER))
            stack.callback(os.close, folders[-1])
        copying.check_new(folders[1])
        given = copying.given_by(target.folder)
        keep(OpenFile(folders[0], (), os.fstat(folders[0])), folders[1], given)
