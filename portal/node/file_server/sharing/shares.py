"""Shares of storage folders, and changes of them with progress."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from dataclasses import dataclass, field

from portal.node.file_server import at
from portal.node.file_server.access.schemes import scheme_of
from portal.node.file_server.access.subjects import Share, Subject
from portal.node.file_server.access.walk import OpenFile, walk
from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.location import Location, shown
from portal.node.file_server.roots import STORAGE, Roots
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from portal.node.file_server.access.schemes import Scheme

WAIT_SECONDS = 3.0
"""How long a request waits for its change, which continues in the background."""
MOST_CHANGES = 4
MOST_WALKS = 10
"""Limit for a folder in which other users rename files all the time."""
MOST_EXAMPLES = 20


@dataclass
class Change:
    """One change of a folder's shares, and its progress."""

    subject: Subject
    access: str | None
    """None: access is taken back."""
    processed: int = 0
    others: list[str] = field(default_factory=list)
    """The first files of other users, which only their owners can share."""
    others_count: int = 0
    exposed: list[str] = field(default_factory=list)
    """The first files beside the folder or its parents that become readable by traversing these."""
    exposed_count: int = 0
    problem: str = ""
    finished: threading.Event = field(default_factory=threading.Event)

    def as_json(self) -> dict[str, Any]:
        """The change in replies."""
        return {
            "kind": self.subject.kind,
            "name": self.subject.name,
            "access": self.access,
            "running": not self.finished.is_set(),
            "done": self.processed,
            "others": {"count": self.others_count, "names": self.others},
            "exposed": {"count": self.exposed_count, "names": self.exposed},
            "problem": self.problem,
        }

    def note_other(self, names: tuple[bytes, ...]) -> None:
        """Record a file that could not be changed."""
        self.others_count += 1
        if len(self.others) < MOST_EXAMPLES:
            self.others.append(shown(b"/".join(names)))

    def note_exposed(self, name: bytes) -> None:
        """Record a file that becomes readable."""
        self.exposed_count += 1
        if len(self.exposed) < MOST_EXAMPLES and not name.startswith(b"."):
            self.exposed.append(shown(name))


class Shares:
    """The shares of the user's own storage folders."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._changes: dict[bytes, Change] = {}

    def listing(self, location: Location) -> dict[str, Any]:
        """The shares of a folder, and their last change; raises Refused."""
        with self._folder(location) as folder:
            file = OpenFile(folder, (), os.fstat(folder))
            scheme = scheme_of(file)
            shares = scheme.shares(file)
            ending = scheme.subjects(file) - {share.subject for share in shares}
            change = self._changes.get(location.name)
        return {
            "shares": [share.as_json() for share in shares],
            "ending": [{"kind": subject.kind, "name": subject.name} for subject in ending],
            "change": change.as_json() if change else None,
        }

    def give(self, location: Location, share: Share) -> Change:
        """Give access, or change it; may continue in the background. Raises Refused."""
        return self._begin(location, Change(share.subject, share.access))

    def take_back(self, location: Location, subject: Subject) -> Change:
        """Take access back; may continue in the background. Raises Refused."""
        return self._begin(location, Change(subject, None))

    def busy(self) -> bool:
        """Whether any change is in progress."""
        return any(not change.finished.is_set() for change in list(self._changes.values()))

    def _begin(self, location: Location, change: Change) -> Change:
        with self._folder(location) as opened:
            scheme = scheme_of(OpenFile(opened, (), os.fstat(opened)))
            folder, key = os.dup(opened), identity(os.fstat(opened))
        try:
            self._roots.holds.begin_change(key, MOST_CHANGES)
        except BaseException:
            os.close(folder)
            raise

        def end() -> None:
            os.close(folder)
            self._roots.holds.end_change(key)
            change.finished.set()

        def run() -> None:
            try:
                self._run(folder, scheme, location, change)
            finally:
                end()

        self._changes[location.name] = change
        try:
            threading.Thread(target=run, daemon=True).start()
        except RuntimeError:  # too many threads
            end()
            raise
        change.finished.wait(WAIT_SECONDS)
        if change.problem:
            raise Refused(409, "share", change.problem)
        return change

    def _run(self, folder: int, scheme: Scheme, location: Location, change: Change) -> None:
        try:
            parents = [] if location.root != STORAGE else _parents(folder, self._limits())
            try:
                _apply(folder, scheme, change)
                _let_pass(parents, change, folder)
            finally:
                for descriptor in parents:
                    os.close(descriptor)
        except Refused as error:
            change.problem = error.detail
        except OSError as error:
            change.problem = refusal_of(error).detail
        except ValueError as error:
            change.problem = f"The access control list of a file is not understood: {error}."

    def _limits(self) -> set[tuple[int, int]]:
        """The directories above which nothing is changed: the user's home and storage area."""
        limits = set()
        for root in self._roots:
            with contextlib.suppress(OSError):
                limits.add(identity(at.status_of_trusted(root.path)))
        return limits

    @contextlib.contextmanager
    def _folder(self, location: Location) -> Iterator[int]:
        """Open a storage folder that the user owns (O_PATH); raises Refused."""
        if location.root != STORAGE or len(location.names) != 1:
            raise Refused(409, "place", "Only your storage folders can be shared as a whole.")
        with self._roots.resolve(location, follow=False) as dentry:
            if stat.S_ISLNK(dentry.status().st_mode):
                raise Refused(409, "link", "This is a link. Share the folder that it leads to.")
            with at.opened(dentry.folder, dentry.name, at.PATH | os.O_DIRECTORY) as folder:
                if os.fstat(folder).st_uid != os.geteuid():
                    raise Refused(403, "permission", "Only a folder's owner can share it.")
                yield folder


def _apply(folder: int, scheme: Scheme, change: Change) -> None:
    """Change the folder, then its contents."""
    subject, access = change.subject, change.access
    if access is None:
        _take_back(folder, scheme, change)
        return

    def grant(file: OpenFile) -> bool:
        scheme.grant(file, subject, access)
        return True

    _visit(folder, grant, change, check_links=not at.links_are_protected())


def _take_back(folder: int, scheme: Scheme, change: Change) -> None:
    """End access, until a walk finds none, since files can be renamed past a walk.

    During the first walk the folder keeps an entry, so that after a crash the change is known.
    """

    def first(file: OpenFile) -> bool:
        if file.names:
            return scheme.revoke(file, change.subject)
        scheme.suspend(file, change.subject)
        return False

    _visit(folder, first, change)
    scheme.revoke(OpenFile(folder, (), os.fstat(folder)), change.subject)
    for _ in range(MOST_WALKS):
        if not _visit(folder, lambda file: scheme.revoke(file, change.subject), change):
            return
    change.problem = "Files are moved in this folder all the time. Take access back once more."


def _visit(
    folder: int, act: Callable[[OpenFile], bool], change: Change, *, check_links: bool = False
) -> bool:
    """Walk once, and reset the counts; returns whether anything has changed."""
    changed = False
    change.processed, change.others_count, change.others = 0, 0, []
    problems: list[OpenFile] = []
    for file in walk(folder, problems):
        several = file.status.st_nlink > 1 and not file.is_folder
        if file.status.st_uid != os.geteuid() or (check_links and several):
            change.note_other(file.names)
            continue
        try:
            changed |= act(file)
        except (OSError, ValueError):  # ValueError: an unknown access control list
            if not file.names:
                raise
            change.note_other(file.names)
        change.processed += 1
    for file in problems:
        change.note_other(file.names)
    return changed


def _parents(folder: int, limits: set[tuple[int, int]]) -> list[int]:
    """The user's own directories above a folder, up to the outermost of the limits (O_PATH)."""
    parents: list[int] = []
    last, above = 0, folder
    while len(parents) < 40:
        above = at.open_parent(above)
        parents.append(above)
        status = os.fstat(above)
        same = len(parents) > 1 and os.path.samestat(status, os.fstat(parents[-2]))
        if same or status.st_uid != os.geteuid():
            break
        if (status.st_dev, status.st_ino) in limits:
            last = len(parents)
    for descriptor in parents[last:]:
        os.close(descriptor)
    return parents[:last]


def _let_pass(parents: list[int], change: Change, folder: int) -> None:
    """Let the subject traverse the parents, or end that with its last share."""
    if change.access is None and parents and _has_other(parents[0], change.subject, folder):
        return
    inside = folder
    for descriptor in parents:
        parent = OpenFile(descriptor, (), os.fstat(descriptor))
        scheme = scheme_of(parent)
        if change.access is None:
            scheme.end_pass(parent, change.subject)
        else:
            _note_exposed(descriptor, inside, change)
            scheme.let_pass(parent, change.subject)
        inside = descriptor


def _has_other(storage: int, subject: Subject, folder: int) -> bool:
    inode = os.fstat(folder).st_ino
    for descriptor, status in _children(storage):
        with contextlib.suppress(OSError, ValueError, Refused):
            if status.st_ino == inode or not stat.S_ISDIR(status.st_mode):
                continue
            file = OpenFile(descriptor, (), status)
            shares = scheme_of(file).shares(file)
            if any(share.subject == subject for share in shares):
                return True
    return False


def _note_exposed(folder: int, inside: int, change: Change) -> None:
    """Record the files of a folder that others can read once they may traverse it."""
    inode = os.fstat(inside).st_ino
    for name, status in _names(folder):
        readable = stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else stat.S_IROTH
        if (
            status.st_mode & readable
            and status.st_ino != inode
            and not stat.S_ISLNK(status.st_mode)
        ):
            change.note_exposed(name)


def _names(folder: int) -> Iterator[tuple[bytes, os.stat_result]]:
    try:
        listed = at.reopen(folder, at.READ_FOLDER)
    except OSError:
        return
    try:
        for name in at.names(listed):
            with contextlib.suppress(OSError):
                yield name, at.status(listed, name)
    finally:
        os.close(listed)


def _children(folder: int) -> Iterator[tuple[int, os.stat_result]]:
    for name, _ in _names(folder):
        try:
            child = at.open_at(folder, name, at.PATH)
        except OSError:
            continue
        try:
            yield child, os.fstat(child)
        finally:
            os.close(child)
