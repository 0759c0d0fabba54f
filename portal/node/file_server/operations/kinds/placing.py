"""Gives complete files their final names, by `on_conflict` if the name exists."""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import alternatives, shown
from portal.node.file_server.operations.operation import ASIDE, Operation
from portal.node.file_server.operations.protected import Protected, above
from portal.node.file_server.operations.request import RENAME, REPLACE, SKIP, exists
from portal.node.file_server.renames import exchange, rename_new
from portal.node.file_server.roots import Dentry
from portal.node.file_server.tree.tree import identity, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.tree.tree import Identity


class Destination:
    """The open folder into which an operation copies or moves."""

    def __init__(
        self,
        operation: Operation,
        folder: int,
        protected: Protected,
        name: bytes = b"",
        *,
        any_kind: bool = False,
    ) -> None:
        """`name`: the new name; without it, items keep their names.

        `any_kind`: a folder may replace a file, and a file a folder.
        """
        self.folder = folder
        self.name = name
        self._operation = operation
        self._protected = protected
        self._any_kind = any_kind

    def refuses(self, dentry: Dentry, name: bytes) -> bool:
        """Whether the item is skipped since the name exists; raises Refused."""
        if self._operation.on_conflict == REPLACE:
            self._check_replaced(dentry, name)
        return self.is_taken(name)

    def _check_replaced(self, dentry: Dentry, name: bytes) -> None:
        """Raise Refused if the replaced file is the original or contains it."""
        with contextlib.suppress(FileNotFoundError):
            old = identity(at.status(self.folder, name))
            if old == identity(dentry.status()):
                raise Refused(409, "same", "The original and the destination are the same.")
            if old in above(dentry.folder):
                words = f"“{shown(name)}” in the destination contains what would replace it."
                raise Refused(409, "into_itself", words)

    def is_taken(self, name: bytes) -> bool:
        """Whether an item is skipped since this name exists; raises Refused."""
        if self._operation.on_conflict in (RENAME, REPLACE) or not exists(self.folder, name):
            return False
        if self._operation.on_conflict != SKIP:
            raise _taken(name)
        self._operation.skipped += 1
        return True

    def has_file(self, name: bytes) -> bool:
        """Whether the name is one of a regular file."""
        try:
            return stat.S_ISREG(at.status(self.folder, name).st_mode)
        except FileNotFoundError:
            return False

    def put(self, folder: int, name: bytes, final: bytes) -> bytes | None:
        """Rename `name` in `folder` to `final` in the destination; raises Refused or OSError.

        Returns the name that it got; None if it was skipped.
        """
        try:
            rename_new(folder, name, self.folder, final)
        except FileExistsError:
            conflict = self._operation.on_conflict
            if conflict == RENAME:
                return self._put_beside(folder, name, final)
            if conflict == REPLACE:
                self._replace(folder, name, final)
            elif self.is_taken(final):
                return None
            else:
                raise _taken(final) from None
        return final

    def _put_beside(self, folder: int, name: bytes, final: bytes) -> bytes:
        is_folder = _is_folder(folder, name)
        for other in alternatives(final, is_folder=is_folder):
            try:
                rename_new(folder, name, self.folder, other)
            except FileExistsError:
                continue
            return other
        raise _taken(final)

    def _replace(self, folder: int, name: bytes, final: bytes) -> None:
        """Replace the existing file or folder, which is deleted recursively.

        At every moment one of the two is complete, under the final name or kept aside.
        """
        old = at.status(self.folder, final)
        is_folder = stat.S_ISDIR(old.st_mode)
        is_same_kind = is_folder == _is_folder(folder, name)
        if not (is_same_kind or self._any_kind):
            words = "a folder" if is_folder else "not a folder"
            raise Refused(409, "kind", f"“{shown(final)}” in the destination is {words}.")
        if is_same_kind and not is_folder:
            at.rename(folder, name, self.folder, final)
            return
        part = self._operation.new_part()
        with self._protected.moving(self.folder, final):
            self._operation.parts.append(old.st_ino)
            exchanged = exchange(folder, name, self.folder, final)
            if exchanged:
                at.rename(folder, name, self.folder, part)
            else:
                self._replace_in_steps(folder, name, final, part)
        if exchanged:
            self._discard(self.folder, part, final, identity(old))
            return
        with at.opened(self.folder, part, at.READ_FOLDER) as aside:
            self._discard(aside, final, final, identity(old))
        with contextlib.suppress(OSError):  # not all of the old folder could be deleted
            at.remove_folder(self.folder, part)

    def _discard(self, folder: int, name: bytes, final: bytes, expected: Identity) -> None:
        """Delete what was replaced; one exchanged by another user gets an alternative name."""
        if identity(at.status(folder, name)) != expected:
            self._put_beside(folder, name, final)
        else:
            remove(folder, name, expected)

    def _replace_in_steps(self, folder: int, name: bytes, final: bytes, part: bytes) -> None:
        """Replace where names cannot be exchanged, as on NFS.

        The old one keeps its name in a folder, which is named `part` in the end. With its first
        name it is put back (records.py) if this process is killed before.
        """
        at.make_folder(self.folder, part + ASIDE, 0o700)
        with at.opened(self.folder, part + ASIDE, at.READ_FOLDER) as aside:
            self._operation.parts.append(os.fstat(aside).st_ino)
            rename_new(self.folder, final, aside, final)
            try:
                rename_new(folder, name, self.folder, final)
            except OSError:
                with contextlib.suppress(OSError):
                    rename_new(aside, final, self.folder, final)
                    at.remove_folder(self.folder, part + ASIDE)
                raise
        at.rename(self.folder, part + ASIDE, self.folder, part)


def _is_folder(folder: int, name: bytes) -> bool:
    return stat.S_ISDIR(at.status(folder, name).st_mode)


def _taken(name: bytes) -> Refused:
    return Refused(409, "exists", f"The destination has “{shown(name)}” already.")
