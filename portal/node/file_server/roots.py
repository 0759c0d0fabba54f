"""Roots, and path resolution below a root, which follows only links that stay inside.

Other users may have written into a folder, above all a shared one: a link in it could lead a
request to any of the user's files. So each step opens one name without following links, and a
link's target is resolved in the same way. Links directly in a root, where no other user can write,
are trusted: a storage folder may be a link to a project's space.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from dataclasses import dataclass

from portal.node.file_server import at
from portal.node.file_server.access import nfs4_acl, posix_acl
from portal.node.file_server.access.holds import Holds
from portal.node.file_server.access.shared import SHARED, open_shared
from portal.node.file_server.deadlines import Deadlines
from portal.node.file_server.errors import Refused, no_such, refusal_of
from portal.node.file_server.location import Location, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STORAGE = "storage"
"""The root whose folders can be shared."""
MOST_LINKS = 40
"""As in Linux."""


@dataclass(frozen=True)
class Root:
    """A directory that the user has access to."""

    name: str
    path: str


@dataclass(frozen=True)
class Dentry:
    """A directory entry: a name in an open directory, or the directory itself (b".")."""

    location: Location
    folder: int
    """Descriptor of the directory (O_PATH)."""
    name: bytes

    def status(self) -> os.stat_result:
        """lstat(2); raises OSError."""
        return at.status(self.folder, self.name)


class Roots:
    """The directories that the server gives access to, by name."""

    def __init__(self, roots: Mapping[str, Root], shared: str = "") -> None:
        self._roots = dict(roots)
        self._shared = shared
        self.deadlines = Deadlines()
        self.holds = Holds()
        self.storage: tuple[int, int] | None = None
        """The last known identity of the storage area (operations/protected.py)."""

    def __iter__(self) -> Iterator[Root]:
        return iter(self._roots.values())

    def get(self, name: str) -> Root:
        """The root of this name; raises Refused."""
        root = self._roots.get(name)
        if root is None:
            raise no_such()
        return root

    @contextlib.contextmanager
    def resolve(
        self,
        location: Location,
        *,
        follow: bool = True,
        to_change: bool = False,
        to_show: bool = False,
    ) -> Iterator[Dentry]:
        """Resolve a location, whose last name need not exist; `follow`: also if that is a link.

        `to_change`: for changes and copies, which refuse links that another user could have
        created. With this or `to_show`, a storage area that is missing is created. Raises Refused,
        also for an OSError of the body.
        """
        try:
            with self._walk(location, follow, to_change, to_show or to_change) as dentry:
                yield dentry
        except OSError as error:
            raise refusal_of(error) from error

    @contextlib.contextmanager
    def _walk(
        self, location: Location, follow: bool, to_change: bool, create: bool
    ) -> Iterator[Dentry]:
        if location.root == SHARED:
            path, opened = open_shared(location.names, self._shared)
            root, names = Root(SHARED, path), list(location.names[2:])
        else:
            root, names = self.get(location.root), list(location.names)
            opened = _open(root, create=create and root.name == STORAGE)
        walk = _Walk(root, opened, own=location.root != SHARED, to_change=to_change)
        try:
            name = walk.go(names, follow)
            yield Dentry(location, walk.folder, name)
        finally:
            walk.close()

    @contextlib.contextmanager
    def folder(
        self, location: Location, *, to_change: bool = False, to_show: bool = False
    ) -> Iterator[int]:
        """A readable descriptor of a folder; the flags are those of resolve(). Raises Refused."""
        with (
            self.resolve(location, to_change=to_change, to_show=to_show) as dentry,
            at.opened(dentry.folder, dentry.name, at.READ_FOLDER) as folder,
        ):
            yield folder

    def open(self, location: Location) -> int:
        """Open a regular file for reading; raises Refused, also if it takes too long."""

        def opened() -> int:
            with self.resolve(location) as dentry:
                return open_file(dentry)

        return self.deadlines.call(location.root, opened, late=os.close)

    def area(self, location: Location) -> Location:
        """The storage area of a location, or the folder that another user shares."""
        return Location(location.root, location.names[:2] if location.root == SHARED else ())

    def probe(self, location: Location) -> None:
        """Return when the file system has answered, even with an error."""
        with contextlib.suppress(Refused), self.resolve(location) as dentry:
            dentry.status()


def _open(root: Root, *, create: bool) -> int:
    """Open a root, or create the storage area of somebody who had no storage folder until now.

    Raises OSError, or Refused if it could not be created.
    """
    try:
        return at.open_trusted(root.path)
    except FileNotFoundError:
        if not create:
            raise
    try:
        at.make_trusted(root.path)
        return at.open_trusted(root.path)
    except OSError as error:
        words = f"Your folder for storage, {root.path}, does not exist, and could not be created"
        detail = f"{words}: {refusal_of(error).detail}"
        raise Refused(404, "not_found", detail) from error


class _Walk:
    """One path resolution: the open directories from a root to the current one."""

    def __init__(self, root: Root, opened: int, *, own: bool, to_change: bool) -> None:
        self._root = root
        self._to_change = to_change
        self._trusted = own
        """Whether links in the first directory may lead to any directory."""
        self._open: list[int] = [opened]
        self._links = 0

    @property
    def folder(self) -> int:
        return self._open[-1]

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def go(self, names: list[bytes], follow: bool) -> bytes:
        """Resolve to the last name's directory; returns that name, b"." for the root itself."""
        waiting = names[::-1]
        while waiting:
            name = waiting.pop()
            if name in (b"", b"."):
                continue
            if name == b"..":
                self._up()
                continue
            last = not waiting
            link = self._link(name) if follow or not last else None
            if link is not None and self._to_change and not self._is_own(name):
                raise planted(name)
            if link is not None and self._enter(name):
                continue
            if link is not None:
                waiting += self._target(name, link)[::-1]
            elif last:
                return name
            else:
                self._down(name)
        return b"."

    def _link(self, name: bytes) -> bytes | None:
        """The target, if this is a link."""
        try:
            return at.read_link(self.folder, name)
        except OSError:
            return None  # not a link, or not readable: the next step reports the error

    def _enter(self, name: bytes) -> bool:
        """Follow a trusted link to a folder, which then counts as the root."""
        if not self._trusted or len(self._open) > 1 or not self._is_own(name):
            return False
        try:
            folder = at.open_trusted(name, self.folder)
        except NotADirectoryError:
            return False
        os.close(self._open.pop())
        self._open.append(folder)
        self._trusted = False
        self._root = Root(self._root.name, at.current_path(folder))
        return True

    def _is_own(self, name: bytes) -> bool:
        return is_own_link(self.folder, at.status(self.folder, name))

    def _target(self, name: bytes, target: bytes) -> list[bytes]:
        self._links += 1
        if self._links > MOST_LINKS:
            raise Refused(409, "loop", f"The link “{shown(name)}” leads in a circle.")
        if not target.startswith(b"/"):
            return target.split(b"/")
        for start in {os.fsencode(self._root.path), os.path.realpath(os.fsencode(self._root.path))}:
            if target == start or target.startswith(start.rstrip(b"/") + b"/"):
                for descriptor in self._open[1:]:
                    os.close(descriptor)
                del self._open[1:]
                return target[len(start) :].split(b"/")
        raise outside(name, target)

    def _down(self, name: bytes) -> None:
        self._open.append(at.open_at(self.folder, name, at.PATH | os.O_DIRECTORY))

    def _up(self) -> None:
        if len(self._open) == 1:
            raise outside(b"..", b"..")
        os.close(self._open.pop())


def is_own_link(folder: int, link: os.stat_result) -> bool:
    """Whether only the user, or root, can have created a link in an open directory."""
    return link.st_uid in (os.getuid(), 0) and is_private(folder)


def is_private(folder: int) -> bool:
    """Whether only the user, or root, can have created files in an open directory."""
    status = os.fstat(folder)
    if status.st_uid not in (os.getuid(), 0) or status.st_mode & stat.S_IWOTH:
        return False
    lists = _access_lists(folder)
    if not status.st_mode & stat.S_IWGRP:  # the mask of a POSIX list, too
        return nfs4_acl.ATTRIBUTE not in lists or not _others_write(folder)
    return not lists and _is_own_group(status.st_gid)


def _access_lists(folder: int) -> set[str]:
    try:
        return {posix_acl.ACCESS, nfs4_acl.ATTRIBUTE} & set(at.attributes(folder))
    except OSError:
        return set()


def _others_write(folder: int) -> bool:
    """Whether an NFSv4 list lets a named user or group write."""
    try:
        entries = nfs4_acl.read(at.descriptor_path(folder))
    except (OSError, ValueError):
        return True
    return any(
        ace.type == nfs4_acl.ALLOW and ace.mask & nfs4_acl.WRITE_DATA and not ace.who.endswith("@")
        for ace in entries
    )


def _is_own_group(number: int) -> bool:
    """Whether the user is the only member of a group (user private group)."""
    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(number)
    except KeyError:
        return False
    is_private = (user.pw_name, user.pw_gid) == (group.gr_name, number)
    return is_private and set(group.gr_mem) <= {user.pw_name}


def planted(name: bytes) -> Refused:
    """The refusal to follow a link for a change."""
    return Refused(
        403,
        "link",
        f"“{shown(name)}” is a link in a folder where others may write, and is not followed to a "
        "change. Use the path that it leads to.",
    )


def outside(name: bytes, target: bytes) -> Refused:
    """The refusal to follow a link out of its root."""
    return Refused(
        403,
        "outside",
        f"“{shown(name)}” is a link to “{shown(target)}”, outside of this storage area, "
        "and is not followed.",
    )


def open_file(dentry: Dentry, flags: int = os.O_RDONLY) -> int:
    """Open a regular file; raises Refused for anything else, without touching it."""
    return open_regular(dentry.folder, dentry.name, flags)


def open_regular(folder: int, name: bytes, flags: int = os.O_RDONLY) -> int:
    """Open a regular file of an open directory; raises Refused for anything else.

    Opening a FIFO could block forever, and opening a device could change its state.
    """
    with at.opened(folder, name, at.PATH) as opened:
        mode = os.fstat(opened).st_mode
        if stat.S_ISDIR(mode):
            raise Refused(409, "folder", "This is a folder.")
        if not stat.S_ISREG(mode):
            raise Refused(409, "special", f"This is {kind_words(mode)}, not a file with contents.")
        return at.reopen(opened, flags)


def kind_words(mode: int) -> str:
    """The type of a file in words, by its mode."""
    for test, words in (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISCHR, "a device"),
    ):
        if test(mode):
            return words
    return "something special"
