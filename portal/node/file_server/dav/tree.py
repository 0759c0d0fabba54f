"""Copies, moves and deletes for WebDAV: operations that end with their first problem.

What is replaced disappears only when what replaces it is complete.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import NamedTuple

from portal.node.file_server import at
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, shown
from portal.node.file_server.operations.kinds import copying, deleting, moving
from portal.node.file_server.operations.kinds.attributes import keep
from portal.node.file_server.operations.kinds.placing import Destination
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.operations.records import Records
from portal.node.file_server.operations.request import COPY, DELETE, MOVE, REFUSE, REPLACE
from portal.node.file_server.roots import Dentry, is_private
from portal.node.file_server.tree.tree import identity
from portal.node.file_server.tree.tree import remove as remove_part
from portal.node.file_server.uploads.records import SMALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class _Strict(Operation):
    """An operation that raises its first problem."""

    def note(self, location: Location, error: Refused) -> None:
        """Raise it."""
        raise error

    def problem(self, location: Location, detail: str) -> None:
        """Raise it."""
        raise Refused(409, "changed", detail)


class Transfer(NamedTuple):
    """A copy or move."""

    source: Dentry
    target: Dentry
    status: os.stat_result
    """Of the source."""
    replaced: os.stat_result | None
    """The target's; None if it does not exist."""
    overwrite: bool
    """Whether it may."""
    protected: Protected
    records: Records


def remove(dentry: Dentry, protected: Protected) -> None:
    """Delete a file, link or folder recursively; raises Refused or OSError."""
    deleting.delete(_Strict(DELETE, (dentry.location,)), dentry.location, dentry, protected)


def move(transfer: Transfer) -> None:
    """Move a file or folder, to another file system by copying; raises Refused or OSError."""
    source = transfer.source
    with _begin(MOVE, transfer) as (operation, to):
        moving.move(operation, source.location, source, to, transfer.protected)


def copy(transfer: Transfer, *, alone: bool) -> None:
    """Copy a file or folder, which appears when it is complete; raises Refused or OSError.

    `alone`: a folder without its contents.
    """
    with _begin(COPY, transfer) as (operation, to):
        if alone and stat.S_ISDIR(transfer.status.st_mode):
            _copy_folder_alone(transfer, operation, to)
        else:
            copying.copy(operation, transfer.source.location, transfer.source, to)


@contextlib.contextmanager
def _begin(kind: str, transfer: Transfer) -> Iterator[tuple[_Strict, Destination]]:
    """An operation, recorded if a kill may leave much behind; raises Refused."""
    target, status = transfer.target, transfer.status
    conflict = REPLACE if transfer.overwrite else REFUSE
    operation = _Strict(kind, (transfer.source.location,), target.location.parent, conflict)
    # Elsewhere, another user could have given the name of a file to a folder of this user's, which
    # only this user can empty.
    any_kind = is_private(target.folder)
    to = Destination(operation, target.folder, transfer.protected, target.name, any_kind=any_kind)
    is_small = _is_small(status) and (not transfer.replaced or _is_small(transfer.replaced))
    with contextlib.nullcontext() if is_small else transfer.records.noted(operation):
        try:
            yield operation, to
        except Refused as error:
            if error.code == "exists":  # created by somebody else meanwhile
                raise taken(target) from error
            raise


def _is_small(status: os.stat_result) -> bool:
    return not stat.S_ISDIR(status.st_mode) and status.st_size <= SMALL


def _copy_folder_alone(transfer: Transfer, operation: Operation, to: Destination) -> None:
    part = operation.new_part()
    at.make_folder(to.folder, part, 0o700)
    with contextlib.ExitStack() as stack:
        source, target = transfer.source, transfer.target
        opened = stack.enter_context(at.opened(source.folder, source.name, at.READ_FOLDER))
        made = stack.enter_context(at.opened(to.folder, part, at.READ_FOLDER))
        copying.check_new(made)
        stack.callback(remove_part, to.folder, part, identity(os.fstat(made)))
        given = copying.given_by(to.folder)
        keep(OpenFile(opened, (), os.fstat(opened)), made, given)
        to.put(to.folder, part, target.name)


def taken(target: Dentry) -> Refused:
    """The refusal to replace something (412)."""
    detail = f"“{shown(target.name)}” exists already."
    return Refused(412, "exists", detail, "Destination")
