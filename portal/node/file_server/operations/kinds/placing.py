"""Gives complete files their final names, by `on_conflict` if the name exists."""

from __future__ import annotations

import contextlib
import stat

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import alternatives, shown
from portal.node.file_server.operations.operation import Operation
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
        self, operation: Operation, folder: int, protected: Protected, name: bytes = b""
    ) -> None:
        """`name`: the new name; without it, items keep their names."""
        self.folder = folder
        self.name = name
        self._operation = operation
        self._protected = protected

    def refuses(self, dentry: Dentry, name: bytes) -> bool:
        """Whether the item is skipped since the name exists; raises Refused."""
        if self._operation.on_conflict == REPLACE:
            self._check_replaced(dentry, name)
        return self._is_taken(name)

    def _check_replaced(self, dentry: Dentry, name: bytes) -> None:
        """Raise Refused if the replaced file is the original or contains it."""
        with contextlib.suppress(FileNotFoundError):
            old = identity(at.status(self.folder, name))
            if old == identity(dentry.status()):
                raise Refused(409, "same", "The original and the destination are the same.")
            if old in above(dentry.folder):
                words = f"“{shown(name)}” in the destination contains what would replace it."
                raise Refused(409, "into_itself", words)

    def _is_taken(self, name: bytes) -> bool:
        if self._operation.on_conflict in (RENAME, REPLACE) or not exists(self.folder, name):
            return False
        if self._operation.on_conflict != SKIP:
            raise _taken(name)
        self._operation.skipped += 1
        return True

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
            elif self._is_taken(final):
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
        """Replace the existing file or folder, which is deleted recursively."""
        old = at.status(self.folder, final)
        if stat.S_ISDIR(old.st_mode) != _is_folder(folder, name):
            words = "a folder" if stat.S_ISDIR(old.st_mode) else "not a folder"
            raise Refused(409, "kind", f"“{shown(final)}” in the destination is {words}.")
        if not stat.S_ISDIR(old.st_mode):
            at.rename(folder, name, self.folder, final)
            return
        with self._protected.moving(self.folder, final):
            part = self._operation.new_part()
            self._operation.parts.append(old.st_ino)
            if exchange(folder, name, self.folder, final):
                at.rename(folder, name, self.folder, part)
            else:
                self._replace_in_steps(folder, name, final, part)
        self._discard(part, final, identity(old))

    def _discard(self, part: bytes, name: bytes, expected: Identity) -> None:
        """Delete the replaced folder; one exchanged by another user gets an alternative name."""
        if identity(at.status(self.folder, part)) != expected:
            self._put_beside(self.folder, part, name)
        else:
            remove(self.folder, part, expected)

    def _replace_in_steps(self, folder: int, name: bytes, final: bytes, part: bytes) -> None:
        rename_new(self.folder, final, self.folder, part)
        try:
            rename_new(folder, name, self.folder, final)
        except OSError:
            with contextlib.suppress(OSError):
                rename_new(self.folder, part, self.folder, final)
            raise


def _is_folder(folder: int, name: bytes) -> bool:
    return stat.S_ISDIR(at.status(folder, name).st_mode)


def _taken(name: bytes) -> Refused:
    return Refused(409, "exists", f"The destination has “{shown(name)}” already.")
