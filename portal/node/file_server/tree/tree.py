"""A walk through a tree in which other users may rename, exchange and delete files meanwhile."""

from __future__ import annotations

import errno
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Identity = tuple[int, int]

MOST_OPEN = 16
"""Descriptors of one walk, however deep the tree is."""

LOST = "moved_meanwhile"
"""Code of a refusal after which a walk cannot go on."""
ENTER, LEAVE, ITEM, PROBLEM = "enter", "leave", "item", "problem"


def identity(status: os.stat_result) -> Identity:
    """The device and inode, which identify a file on this host."""
    return status.st_dev, status.st_ino


class Descent:
    """An open directory, and its parents up to the one where the descent began."""

    def __init__(self, folder: int) -> None:
        """`folder` is duplicated, and remains the caller's."""
        self._levels = [os.dup(folder)]
        self._identities = [identity(os.fstat(folder))]

    @property
    def folder(self) -> int:
        """Descriptor of the current directory."""
        return self._levels[-1]

    @property
    def identities(self) -> list[Identity]:
        """The directories from the beginning to the current one."""
        return self._identities

    def down(self, name: bytes) -> os.stat_result:
        """Enter a directory; returns its status. Raises OSError, for a link too."""
        opened = at.open_at(self.folder, name, at.READ_FOLDER)
        self._levels.append(opened)
        status = os.fstat(opened)
        self._identities.append(identity(status))
        if len(self._levels) > MOST_OPEN:  # the beginning remains: its name may be “.”
            self._release(max(len(self._levels) - MOST_OPEN, 1))
        return status

    def _release(self, level: int) -> None:
        if self._levels[level] >= 0:
            os.close(self._levels[level])
            self._levels[level] = -1

    def parent(self) -> int:
        """Descriptor of the directory above; raises Refused if this one was moved meanwhile."""
        if self._levels[-2] < 0:
            try:
                opened = at.open_parent(self.folder, os.O_RDONLY)
            except OSError as error:
                raise _lost() from error
            if identity(os.fstat(opened)) != self._identities[-2]:
                os.close(opened)
                raise _lost()
            self._levels[-2] = opened
        return self._levels[-2]

    def up(self) -> None:
        """Return to the directory above; raises Refused."""
        self.parent()
        os.close(self._levels.pop())
        self._identities.pop()

    def close(self) -> None:
        """Close all descriptors."""
        for level in range(len(self._levels)):
            self._release(level)


def _lost() -> Refused:
    return Refused(409, LOST, "Folders were moved while this was done. Do it again.")


class Step:
    """A step of a walk: a folder entered or left, another file, or a problem."""

    __slots__ = ("error", "kind", "name", "skip", "status")

    def __init__(
        self, kind: str, name: bytes, status: os.stat_result, error: OSError | None = None
    ) -> None:
        self.kind = kind
        self.name = name
        self.status = status
        self.error = error
        self.skip = False
        """Set by the caller to skip the contents of this folder; there is no LEAVE step then."""


class Tree:
    """A walk through one directory entry, which may be a folder or any other file.

    During a step, `folder` is the directory that contains it, and for a folder that is entered or
    left `inside` is the folder itself.
    """

    def __init__(
        self,
        folder: int,
        *,
        one_file_system: bool = False,
        before: Callable[[int, bytes], None] | None = None,
    ) -> None:
        """`before` is called with each folder's name before it is opened."""
        self._descent = Descent(folder)
        self._one_file_system = one_file_system
        self._before = before
        self._entered: list[tuple[bytes, os.stat_result]] = []
        self._pending: list[Iterator[bytes]] = []
        self._moving = False

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self._descent.close()

    @property
    def folder(self) -> int:
        """Descriptor of the directory that contains the step."""
        return self._descent.parent() if self._moving else self._descent.folder

    @property
    def inside(self) -> int:
        """Descriptor of the folder that is entered or left."""
        return self._descent.folder

    def below(self, step: Step) -> tuple[bytes, ...]:
        """The names from the start of the walk to this step; () for the start itself."""
        above = [name for name, _ in self._entered[: self.depth]]
        return (*above, step.name)[1:]

    @property
    def depth(self) -> int:
        """Number of folders of the walk that contain the step."""
        return len(self._entered) - (1 if self._moving else 0)

    def steps(self, name: bytes) -> Iterator[Step]:
        """Walk; raises OSError if the start does not exist, Refused if a parent was moved."""
        first = at.status(self._descent.folder, name)
        self._pending = [iter([name])]
        while self._pending:
            child = next(self._pending[-1], None)
            if child is None:
                self._pending.pop()
                yield from self._leave()
            else:
                yield from self._visit(child, first)

    def _leave(self) -> Iterator[Step]:
        if not self._entered:
            return
        name, status = self._entered[-1]
        self._moving = True
        yield Step(LEAVE, name, status)
        self._moving = False
        self._up()

    def _up(self) -> None:
        self._descent.up()
        self._entered.pop()

    def _visit(self, name: bytes, first: os.stat_result) -> Iterator[Step]:
        status = first
        try:
            status = at.status(self._descent.folder, name)
            is_folder = stat.S_ISDIR(status.st_mode)
            names = self._open(name, status, first) if is_folder else None
        except OSError as error:
            yield Step(PROBLEM, name, status, error)
            return
        if names is None:
            yield Step(ITEM, name, status)
            return
        status = os.fstat(self._descent.folder)
        self._entered.append((name, status))
        self._moving = True
        step = Step(ENTER, name, status)
        yield step
        self._moving = False
        if step.skip:
            self._up()
        else:
            self._pending.append(iter(names))

    def _open(self, name: bytes, status: os.stat_result, first: os.stat_result) -> list[bytes]:
        """Enter a folder; returns the names in it."""
        if self._one_file_system and status.st_dev != first.st_dev:
            raise OSError(errno.EXDEV, "mounted")
        if self._before:
            self._before(self._descent.folder, name)
        entered = identity(self._descent.down(name))
        try:
            if self._entered and entered in self._descent.identities[:-1]:
                raise OSError(errno.ELOOP, "a mount leads in a circle")
            return at.names(self._descent.folder)
        except OSError:
            self._descent.up()
            raise


def change_mode(folder: int, name: bytes, mode_of: Callable[[os.stat_result], int]) -> None:
    """chmod for a name in an open directory; raises Refused for a link, and OSError.

    `mode_of` gets the status of the open file, which another user may have exchanged before.
    """
    with at.opened(folder, name, at.PATH) as opened:
        status = os.fstat(opened)
        if stat.S_ISLNK(status.st_mode):
            raise Refused(409, "link", "Links have no permissions of their own.")
        if (mode := mode_of(status)) != stat.S_IMODE(status.st_mode):
            at.change_mode(opened, mode)


def remove(folder: int, name: bytes, expected: Identity | None = None) -> None:
    """Delete a file or tree as far as possible; it may be missing.

    Nothing is deleted if it is not the expected one: other users may have exchanged it.
    """

    def opened_up(status: os.stat_result) -> int:
        """Let the owner delete the contents of a folder, which may be a copy of a read-only one."""
        mode = stat.S_IMODE(status.st_mode)
        is_meant = bool(tree.depth) or expected in (None, identity(status))
        return mode | 0o700 if is_meant and stat.S_ISDIR(status.st_mode) else mode

    def before(inside: int, below: bytes) -> None:
        change_mode(inside, below, opened_up)

    with Tree(folder, one_file_system=True, before=before) as tree:
        try:
            for step in tree.steps(name):
                if not tree.depth and expected not in (None, identity(step.status)):
                    return
                try:
                    if step.kind == LEAVE:
                        at.remove_folder(tree.folder, step.name)
                    elif step.kind == ITEM:
                        at.unlink(tree.folder, step.name)
                except OSError:
                    continue  # then the folder above cannot be deleted either
        except (OSError, Refused):
            return
