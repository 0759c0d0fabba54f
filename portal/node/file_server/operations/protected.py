"""Folders that must remain: the storage areas, all folders that lead to them, and folders that
others have access to.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os

from portal.node.file_server import at
from portal.node.file_server.deadlines import Deadlines, away
from portal.node.file_server.errors import Refused, shared
from portal.node.file_server.location import shown
from portal.node.file_server.roots import STORAGE, Root, Roots
from portal.node.file_server.storage.schemes import shared_with
from portal.node.file_server.storage.walk import Found
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Identity = tuple[int, int]

SECONDS = 2.0
"""For each storage area; one that does not answer cannot be deleted either."""
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP)


class Protected:
    """The folders that are neither moved nor deleted nor replaced, by identity."""

    def __init__(self, roots: Roots, deadlines: Deadlines) -> None:
        """Look at all storage areas, except those that did not answer a moment ago."""
        self._identities: dict[Identity, str] = {}
        self._roots = roots
        self._has_storage = False
        for root in roots:
            self._has_storage |= root.name == STORAGE
            if deadlines.is_late(root.name):
                continue
            try:
                found = deadlines.call(root.name, functools.partial(_chain, root), SECONDS)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                self._has_storage &= root.name != STORAGE  # so nothing in it is shared either
                continue
            except (Refused, OSError):
                continue
            if root.name == STORAGE:
                roots.storage = found[0]
            for each in found:
                self._identities.setdefault(each, root.name)

    def check(self, parent: int, folder: int, name: bytes, *, shares_follow: bool = False) -> None:
        """Raise Refused if this open folder must remain where it is, or OSError.

        `shares_follow`: the portal takes the shares of a storage folder along.
        """
        status = os.fstat(folder)
        root = self._identities.get(identity(status))
        if root is not None:
            words = f"“{shown(name)}” contains the storage area “{root}” and remains."
            raise Refused(409, "root", words, "items")
        if shares_follow or not self._is_storage(parent) or status.st_uid != os.geteuid():
            return
        if shared_with(Found(folder, (), status)):
            raise shared([name])

    @contextlib.contextmanager
    def moving(self, parent: int, name: bytes, *, shares_follow: bool = False) -> Iterator[None]:
        """As check, for what has this name; nobody gets access to it during the body."""
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
        """The user's storage folder that contains an open directory, or is it (O_PATH); access to
        it is not changed during the body. None if there is none. Raises Refused, OSError.
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
            return None  # what lies above cannot be entered from here
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
    """The identities of an open directory and of all that contain it; raises OSError."""
    found: dict[Identity, None] = {}
    current = os.dup(folder)
    try:
        while (own := identity(os.fstat(current))) not in found:
            found[own] = None
            parent = at.open_parent(current)
            os.close(current)
            current = parent
    except PermissionError:
        pass  # what lies above cannot be entered from here
    finally:
        os.close(current)
    return found
