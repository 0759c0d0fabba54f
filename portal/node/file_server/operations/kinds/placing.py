"""Gives something that is complete its final name, as the user wants it if the name is taken."""

from __future__ import annotations

import contextlib
import stat

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import shown
from portal.node.file_server.operations.kinds import names
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected, above
from portal.node.file_server.operations.request import RENAME, REPLACE, SKIP, exists
from portal.node.file_server.renames import exchange, rename_new
from portal.node.file_server.roots import Place
from portal.node.file_server.tree.tree import identity, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.tree.tree import Identity


class Destination:
    """The open folder into which an operation copies or moves."""

    def __init__(
        self, operation: Operation, folder: int, protected: Protected, name: bytes = b""
    ) -> None:
        """`name`: of what comes into it; it keeps its own without that."""
        self.folder = folder
        self.name = name
        self._operation = operation
        self._protected = protected

    def refuses(self, place: Place, name: bytes) -> bool:
        """Whether nothing is to be done, since the name is taken; raises Refused."""
        if self._operation.on_conflict == REPLACE:
            self._check_replaced(place, name)
        return self._is_taken(name)

    def _check_replaced(self, place: Place, name: bytes) -> None:
        """What is replaced must neither be the original nor contain it."""
        with contextlib.suppress(FileNotFoundError):
            old = identity(at.status(self.folder, name))
            if old == identity(place.status()):
                raise Refused(409, "same", "The original and the destination are the same.")
            if old in above(place.folder):
                words = f"“{shown(name)}” in the destination contains what would replace it."
                raise Refused(409, "into_itself", words)

    def _is_taken(self, name: bytes) -> bool:
        if self._operation.on_conflict in (RENAME, REPLACE) or not exists(self.folder, name):
            return False
        if self._operation.on_conflict != SKIP:
            raise _taken(name)
        self._operation.skipped += 1
        return True

    def put(self, folder: int, name: bytes, wanted: bytes) -> bytes | None:
        """Rename `name` in `folder` to the wanted name here; raises Refused or OSError.

        Returns the name that it got; None if it was skipped.
        """
        try:
            rename_new(folder, name, self.folder, wanted)
        except FileExistsError:
            conflict = self._operation.on_conflict
            if conflict == RENAME:
                return self._put_beside(folder, name, wanted)
            if conflict == REPLACE:
                self._replace(folder, name, wanted)
            elif self._is_taken(wanted):
                return None
            else:
                raise _taken(wanted) from None
        return wanted

    def _put_beside(self, folder: int, name: bytes, wanted: bytes) -> bytes:
        is_folder = _is_folder(folder, name)
        for other in names.others(wanted, is_folder=is_folder):
            try:
                rename_new(folder, name, self.folder, other)
            except FileExistsError:
                continue
            return other
        raise _taken(wanted)

    def _replace(self, folder: int, name: bytes, wanted: bytes) -> None:
        """Put it in the place of what is there, which is deleted with all that it contains."""
        old = at.status(self.folder, wanted)
        if stat.S_ISDIR(old.st_mode) != _is_folder(folder, name):
            words = "a folder" if stat.S_ISDIR(old.st_mode) else "not a folder"
            raise Refused(409, "kind", f"“{shown(wanted)}” in the destination is {words}.")
        if not stat.S_ISDIR(old.st_mode):
            at.rename(folder, name, self.folder, wanted)
            return
        with self._protected.moving(self.folder, wanted):
            part = self._operation.new_part()
            self._operation.parts.append(old.st_ino)
            if exchange(folder, name, self.folder, wanted):
                at.rename(folder, name, self.folder, part)
            else:
                self._replace_in_steps(folder, name, wanted, part)
        self._discard(part, wanted, identity(old))

    def _discard(self, part: bytes, name: bytes, expected: Identity) -> None:
        """Delete what was replaced; what others have put in its place gets a name beside it."""
        if identity(at.status(self.folder, part)) != expected:
            self._put_beside(self.folder, part, name)
        else:
            remove(self.folder, part, expected)

    def _replace_in_steps(self, folder: int, name: bytes, wanted: bytes, part: bytes) -> None:
        rename_new(self.folder, wanted, self.folder, part)
        try:
            rename_new(folder, name, self.folder, wanted)
        except OSError:
            with contextlib.suppress(OSError):
                rename_new(self.folder, part, self.folder, wanted)
            raise


def _is_folder(folder: int, name: bytes) -> bool:
    return stat.S_ISDIR(at.status(folder, name).st_mode)


def _taken(name: bytes) -> Refused:
    return Refused(409, "exists", f"The destination has “{shown(name)}” already.")
