"""Roots, and the walk from a root to a file: links are followed only as far as they stay inside.

Others may have written into a folder, above all a shared one: a link in it could lead a request to
any file of the user's. So each step opens one name without following links, and a link's target is
walked in the same way. Only links directly in a root, where nobody else can write, are the user's
word: a storage folder may be a link to a project's space.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass

from portal.file_server.deadlines import Deadlines
from portal.file_server.errors import Refused, no_such, refusal_of
from portal.file_server.location import Location, shown
from portal.file_server.shared import SHARED, open_shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

O_PATH = getattr(os, "O_PATH", 0o10000000)  # Python 3.10
_STEP = O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_LINKS = 40
"""As in Linux."""


@dataclass(frozen=True)
class Root:
    """A directory in which the user works."""

    name: str
    path: str


@dataclass(frozen=True)
class Place:
    """Where a location leads: a name in an open directory, or the directory itself (b".")."""

    location: Location
    folder: int
    """Descriptor of the directory (O_PATH)."""
    name: bytes

    def status(self) -> os.stat_result:
        """lstat(2); raises OSError."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)


class Roots:
    """The directories that a server gives access to, by name."""

    def __init__(self, roots: Mapping[str, Root], shared: str = "") -> None:
        self._roots = dict(roots)
        self._shared = shared
        self.deadlines = Deadlines()

    def __iter__(self) -> Iterator[Root]:
        return iter(self._roots.values())

    def get(self, name: str) -> Root:
        """The root of this name; raises Refused."""
        root = self._roots.get(name)
        if root is None:
            raise no_such()
        return root

    @contextlib.contextmanager
    def place(self, location: Location, *, follow: bool = True) -> Iterator[Place]:
        """The place of a location; `follow`: also a link as its last name.

        The last name need not exist. Raises Refused; OSError of the body becomes Refused, too.
        """
        try:
            with self._walk(location, follow) as place:
                yield place
        except OSError as error:
            raise refusal_of(error) from error

    @contextlib.contextmanager
    def _walk(self, location: Location, follow: bool) -> Iterator[Place]:
        if location.root == SHARED:
            path, opened = open_shared(location.names, self._shared)
            root, names = Root(SHARED, path), list(location.names[2:])
        else:
            root, names = self.get(location.root), list(location.names)
            opened = _open_root(root)
        walk = _Walk(root, opened, own=location.root != SHARED)
        try:
            name = walk.go(names, follow)
            yield Place(location, walk.folder, name)
        finally:
            walk.close()

    @contextlib.contextmanager
    def folder(self, location: Location) -> Iterator[int]:
        """A readable descriptor of a folder; raises Refused."""
        with self.place(location) as place:
            descriptor = os.open(
                place.name,
                os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
                dir_fd=place.folder,
            )
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def open(self, location: Location) -> int:
        """A descriptor for reading a regular file; raises Refused, also if it takes too long."""

        def opened() -> int:
            with self.place(location) as place:
                return open_file(place)

        return self.deadlines.call(location.root, opened, late=os.close)

    def area(self, location: Location) -> Location:
        """The storage area, or the folder that another user shares."""
        return Location(location.root, location.names[:2] if location.root == SHARED else ())

    def probe(self, location: Location) -> None:
        """Return when the file system answers, whatever it says."""
        with contextlib.suppress(Refused), self.place(location) as place:
            place.status()


class _Walk:
    """The open directories from a root to where the walk is."""

    def __init__(self, root: Root, opened: int, *, own: bool) -> None:
        self._root = root
        self._trusted = own
        """Whether links in the first directory lead to wherever the user may go."""
        self._open: list[int] = [opened]
        self._links = 0

    @property
    def folder(self) -> int:
        return self._open[-1]

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def go(self, names: list[bytes], follow: bool) -> bytes:
        """Walk to the last name's directory; returns that name, b"." for the root itself."""
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
            return os.readlink(name, dir_fd=self.folder)
        except OSError:
            return None  # no link, or none that can be read: the next step says what is wrong

    def _enter(self, name: bytes) -> bool:
        """Go on in the folder behind a link of the user's own, as if it were the root."""
        if not self._trusted or len(self._open) > 1 or not self._is_own_link(name):
            return False
        try:
            found = os.open(name, O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.folder)
        except NotADirectoryError:
            return False
        os.close(self._open.pop())
        self._open.append(found)
        self._trusted = False
        self._root = Root(self._root.name, os.readlink(f"/proc/self/fd/{found}"))
        return True

    def _is_own_link(self, name: bytes) -> bool:
        """Whether only the user, or root, can have put this link here."""
        ours = (os.getuid(), 0)
        folder = os.fstat(self.folder)
        link = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
        return folder.st_uid in ours and not folder.st_mode & 0o022 and link.st_uid in ours

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
        self._open.append(os.open(name, _STEP | os.O_DIRECTORY, dir_fd=self.folder))

    def _up(self) -> None:
        if len(self._open) == 1:
            raise outside(b"..", b"..")
        os.close(self._open.pop())


def outside(name: bytes, target: bytes) -> Refused:
    """The answer for a link that leads out of its root."""
    return Refused(
        403,
        "outside",
        f"“{shown(name)}” is a link to “{shown(target)}”, outside of this storage area, "
        "and is not followed.",
    )


def _open_root(root: Root) -> int:
    return os.open(root.path, O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def open_file(place: Place, flags: int = os.O_RDONLY) -> int:
    """Open a regular file; raises Refused for anything else, without touching it."""
    return open_regular(place.folder, place.name, flags)


def open_regular(folder: int, name: bytes, flags: int = os.O_RDONLY) -> int:
    """Open a regular file of an open directory; raises Refused for anything else.

    Opening a FIFO could wait for ever, and opening a device could change its state.
    """
    found = os.open(name, _STEP, dir_fd=folder)
    try:
        mode = os.fstat(found).st_mode
        if stat.S_ISDIR(mode):
            raise Refused(409, "folder", "This is a folder.")
        if not stat.S_ISREG(mode):
            raise Refused(409, "special", f"This is {kind_words(mode)}, not a file with contents.")
        return os.open(f"/proc/self/fd/{found}", flags | os.O_CLOEXEC)
    finally:
        os.close(found)


def kind_words(mode: int) -> str:
    """What something is, in words."""
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
