"""Folders that must not be moved or deleted: storage areas, their parents, and shared folders."""

from __future__ import annotations

import contextlib
import errno
import functools
import os

from portal.node.file_server import at
from portal.node.file_server.access.schemes import shared_with
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.deadlines import Deadlines, away
from portal.node.file_server.errors import Refused, Shared
from portal.node.file_server.location import shown
from portal.node.file_server.roots import STORAGE, Root, Roots
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Identity = tuple[int, int]

SECONDS = 2.0
"""Deadline for each storage area; one that does not answer cannot be deleted either."""
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP)


class Protected:
    """The folders that must not be moved, deleted or replaced, by identity."""

    def __init__(self, roots: Roots, deadlines: Deadlines) -> None:
        """Identify all storage areas, except those with calls that are late."""
        self._identities: dict[Identity, str] = {}
        self._roots = roots
        self._has_storage = False
        for root in roots:
            self._has_storage |= root.name == STORAGE
            if deadlines.is_late(root.name):
                continue
            try:
                chain = deadlines.call(root.name, functools.partial(_chain, root), SECONDS)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                self._has_storage &= root.name != STORAGE  # then nothing in it is shared
                continue
            except (Refused, OSError):
                continue
            if root.name == STORAGE:
                roots.storage = chain[0]
            for folder in chain:
                self._identities.setdefault(folder, root.name)

    def check(self, parent: int, folder: int, name: bytes, *, shares_follow: bool = False) -> None:
        """Raise Refused if an open folder must not be moved or deleted, or OSError.

        `shares_follow`: the portal renames the shares of a storage folder, too.
        """
        status = os.fstat(folder)
        root = self._identities.get(identity(status))
        if root is not None:
            words = f"“{shown(name)}” contains the storage area “{root}” and remains."
            raise Refused(409, "root", words, "items")
        if shares_follow or not self._is_storage(parent) or status.st_uid != os.geteuid():
            return
        subjects = shared_with(OpenFile(folder, (), status))
        if subjects:
            raise Shared({name: sorted(subject.words for subject in subjects)})

    @contextlib.contextmanager
    def moving(self, parent: int, name: bytes, *, shares_follow: bool = False) -> Iterator[None]:
        """Check a folder by name, and prevent changes of its shares during the body."""
        try:
            folder = at.open_at(parent, name, at.PATH | os.O_DIRECTORY)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            yield
            return
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, folder)
            if self._is_storage(parent):
                stack.enter_context(self._roots.holds.moving(identity(os.fstat(folder))))
            self.check(parent, folder, name, shares_follow=shares_follow)
            yield

    @contextlib.contextmanager
    def storage_folder(self, folder: int) -> Iterator[int | None]:
        """Yield the storage folder that contains an open directory, or is it (O_PATH), or None.

        Its shares do not change during the body. Raises Refused, OSError.
        """
        opened = self._storage_above(folder)
        if opened is None:
            yield None
            return
        try:
            with self._roots.holds.moving(identity(os.fstat(opened))):
                yield opened
        finally:
            os.close(opened)

    def _storage_above(self, folder: int) -> int | None:
        current = os.dup(folder)
        try:
            while not self._is_storage(parent := at.open_parent(current)):
                is_top = os.path.samestat(os.fstat(parent), os.fstat(current))
                os.close(current)
                current = parent
                if is_top:
                    return None
            os.close(parent)
            return os.dup(current)
        except PermissionError:
            return None  # a parent that the user may not enter
        finally:
            os.close(current)

    def _is_storage(self, folder: int) -> bool:
        """Whether an open directory is the storage area; raises Refused if that is unknown."""
        if not self._has_storage:
            return False
        if self._roots.storage is None:
            raise away()
        return identity(os.fstat(folder)) == self._roots.storage


def _chain(root: Root) -> list[Identity]:
    folder = at.open_trusted(root.path)
    try:
        return list(above(folder))
    finally:
        os.close(folder)


def above(folder: int) -> dict[Identity, None]:
    """The identities of an open directory and of its parents; raises OSError."""
    identities: dict[Identity, None] = {}
    current = os.dup(folder)
    try:
        while (current_identity := identity(os.fstat(current))) not in identities:
            identities[current_identity] = None
            parent = at.open_parent(current)
            os.close(current)
            current = parent
    except PermissionError:
        pass  # a parent that the user may not enter
    finally:
        os.close(current)
    return identities
