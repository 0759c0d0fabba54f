"""Files that a killed server has left half written: its successor writes them once more."""

from __future__ import annotations

import contextlib

from portal.node.file_server import at, in_place
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, alternatives, marked, parse
from portal.node.file_server.renames import rename_new
from portal.node.file_server.roots import Dentry, Roots
from portal.node.file_server.uploads import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.uploads.records import Record


def complete(roots: Roots, record: Record) -> bool:
    """Write a part into its file again; False if the file was changed since, or is gone.

    Then the part gets a name that the user sees, beside the file or in the home directory. Raises
    Refused or OSError while the file or the part cannot be reached.
    """
    with contextlib.ExitStack() as stack:
        dentry = _target(roots, record, stack)
        beside = -1 if dentry is None else dentry.folder
        try:
            part = stack.enter_context(parts.part_of(record, beside))
            file = stack.enter_context(parts.claimed(part, record))
        except FileNotFoundError:  # it was complete
            return True
        except Refused as refused:
            if refused.code == "gone":
                return False
            raise
        if dentry is not None and _resume(dentry, record, file):
            at.unlink(part.folder, part.name)
            return True
        if dentry is not None and not record.folder:
            _keep(part, dentry.folder, record)
        else:
            with roots.folder(Location("home")) as home:
                _keep(part, home, record)
        return False


def _target(roots: Roots, record: Record, stack: contextlib.ExitStack) -> Dentry | None:
    """The target; None if its folder is gone, and the part is not in it."""
    try:
        return stack.enter_context(parts.resolve(roots, record))
    except Refused as refused:
        if refused.status >= 500 or not record.folder:
            raise
        return None


def _resume(dentry: Dentry, record: Record, file: int) -> bool:
    try:
        return in_place.resume(dentry, record.kept, file)
    except PermissionError:  # it was taken back meanwhile
        return False


def _keep(part: Dentry, folder: int, record: Record) -> None:
    """Rename a part to a name that the user sees; raises OSError."""
    name = marked(parse(record.path).name, b"recovered")
    for candidate in (name, *alternatives(name, is_folder=False)):
        try:
            rename_new(part.folder, part.name, folder, candidate)
        except FileExistsError:
            continue
        return
