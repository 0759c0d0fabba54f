"""Shares of storage folders: who has access, and changes of that with progress."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from dataclasses import dataclass, field

from portal.node.file_server import at
from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.location import Location, shown
from portal.node.file_server.roots import STORAGE, Roots
from portal.node.file_server.storage.schemes import scheme_of
from portal.node.file_server.storage.subjects import Share, Subject
from portal.node.file_server.storage.walk import Found, walk
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from portal.node.file_server.storage.schemes import Scheme

WAIT_SECONDS = 3.0
"""How long a request waits for its change; larger folders go on in the background."""
MOST_CHANGES = 4
MOST_WALKS = 10
"""Through a folder in which files are renamed all the time, past a walk."""
MOST_EXAMPLES = 20
_LINKS = "/proc/sys/fs/protected_hardlinks"


@dataclass
class Change:
    """One change of a folder's shares, and how far it is."""

    subject: Subject
    access: str | None
    """None: access is taken back."""
    done: int = 0
    others: list[str] = field(default_factory=list)
    """Files of somebody else's, which only their owner can share; the first ones."""
    others_count: int = 0
    exposed: list[str] = field(default_factory=list)
    """Beside the folder, on the way to it: what everybody may read who gets that far."""
    exposed_count: int = 0
    problem: str = ""
    finished: threading.Event = field(default_factory=threading.Event)

    def as_json(self) -> dict[str, Any]:
        """As in answers."""
        return {
            "kind": self.subject.kind,
            "name": self.subject.name,
            "access": self.access,
            "running": not self.finished.is_set(),
            "done": self.done,
            "others": {"count": self.others_count, "names": self.others},
            "exposed": {"count": self.exposed_count, "names": self.exposed},
            "problem": self.problem,
        }

    def note_other(self, names: tuple[bytes, ...]) -> None:
        """Note a file that could not be changed."""
        self.others_count += 1
        if len(self.others) < MOST_EXAMPLES:
            self.others.append(shown(b"/".join(names)))

    def note_exposed(self, name: bytes) -> None:
        """Note a file that becomes accessible in passing."""
        self.exposed_count += 1
        if len(self.exposed) < MOST_EXAMPLES and not name.startswith(b"."):
            self.exposed.append(shown(name))


class Shares:
    """The shares of the user's own storage folders."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._changes: dict[bytes, Change] = {}

    def listing(self, location: Location) -> dict[str, Any]:
        """Who has access to a folder, and the last change of that; raises Refused."""
        with self._folder(location) as folder:
            found = Found(folder, (), os.fstat(folder))
            scheme = scheme_of(found)
            listed = scheme.shares(found)
            ending = scheme.subjects(found) - {share.subject for share in listed}
            change = self._changes.get(location.name)
        return {
            "shares": [share.as_json() for share in listed],
            "ending": [{"kind": subject.kind, "name": subject.name} for subject in ending],
            "change": change.as_json() if change else None,
        }

    def give(self, location: Location, share: Share) -> Change:
        """Give access, or change it; raises Refused. The change may go on in the background."""
        return self._begin(location, Change(share.subject, share.access))

    def take_back(self, location: Location, subject: Subject) -> Change:
        """Take access back; raises Refused. The change may go on in the background."""
        return self._begin(location, Change(subject, None))

    def busy(self) -> bool:
        """Whether a change is going on."""
        return any(not change.finished.is_set() for change in list(self._changes.values()))

    def _begin(self, location: Location, change: Change) -> Change:
        with self._folder(location) as opened:
            scheme = scheme_of(Found(opened, (), os.fstat(opened)))
            folder, held = os.dup(opened), identity(os.fstat(opened))
        try:
            self._roots.holds.begin_change(held, MOST_CHANGES)
        except BaseException:
            os.close(folder)
            raise

        def end() -> None:
            os.close(folder)
            self._roots.holds.end_change(held)
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
            way = [] if location.root != STORAGE else _way(folder, self._limits())
            try:
                _apply(folder, scheme, change)
                _open_way(way, change, folder)
            finally:
                for descriptor in way:
                    os.close(descriptor)
        except Refused as error:
            change.problem = error.detail
        except OSError as error:
            change.problem = refusal_of(error).detail
        except ValueError as error:
            change.problem = f"The access control list of a file is not understood: {error}."

    def _limits(self) -> set[tuple[int, int]]:
        """The directories above which nothing is changed: the user's home and the storage."""
        found = set()
        for root in self._roots:
            with contextlib.suppress(OSError):
                found.add(identity(at.status_of_trusted(root.path)))
        return found

    @contextlib.contextmanager
    def _folder(self, location: Location) -> Iterator[int]:
        """A storage folder of the user's own (O_PATH); raises Refused."""
        if location.root != STORAGE or len(location.names) != 1:
            raise Refused(409, "place", "Only your storage folders can be shared as a whole.")
        with self._roots.place(location, follow=False) as place:
            if stat.S_ISLNK(place.status().st_mode):
                raise Refused(409, "link", "This is a link. Share the folder that it leads to.")
            with at.opened(place.folder, place.name, at.PATH | os.O_DIRECTORY) as folder:
                if os.fstat(folder).st_uid != os.geteuid():
                    raise Refused(403, "permission", "Only a folder's owner can share it.")
                yield folder


def _apply(folder: int, scheme: Scheme, change: Change) -> None:
    """Change the folder and all that is in it; the folder itself first."""
    subject, access = change.subject, change.access
    if access is None:
        _take_back(folder, scheme, change)
        return

    def grant(found: Found) -> bool:
        scheme.grant(found, subject, access)
        return True

    _visit(folder, grant, change, check_links=not _links_are_protected())


def _take_back(folder: int, scheme: Scheme, change: Change) -> None:
    """End access, until a walk finds none: files can be renamed past a walk meanwhile.

    The folder keeps a mark of it during the first walk, or a crash would leave what nobody knows.
    """

    def first(found: Found) -> bool:
        if found.names:
            return scheme.revoke(found, change.subject)
        scheme.suspend(found, change.subject)
        return False

    _visit(folder, first, change)
    scheme.revoke(Found(folder, (), os.fstat(folder)), change.subject)
    for _ in range(MOST_WALKS):
        if not _visit(folder, lambda found: scheme.revoke(found, change.subject), change):
            return
    change.problem = "Files are moved in this folder all the time. Take access back once more."


def _visit(
    folder: int, act: Callable[[Found], bool], change: Change, *, check_links: bool = False
) -> bool:
    """Walk once, and count anew; returns whether anything has changed."""
    changed = False
    change.done, change.others_count, change.others = 0, 0, []
    problems: list[Found] = []
    for found in walk(folder, problems):
        several = found.status.st_nlink > 1 and not found.is_folder
        if found.status.st_uid != os.geteuid() or (check_links and several):
            change.note_other(found.names)
            continue
        try:
            changed |= act(found)
        except (OSError, ValueError):  # or its list is not understood
            if not found.names:
                raise
            change.note_other(found.names)
        change.done += 1
    for found in problems:
        change.note_other(found.names)
    return changed


def _links_are_protected() -> bool:
    """Whether the kernel lets nobody link to files that he may not write.

    Otherwise another user could have put any file of the owner's under a second name here.
    """
    try:
        with open(_LINKS) as file:
            return file.read().strip() == "1"
    except OSError:
        return False


def _way(folder: int, limits: set[tuple[int, int]]) -> list[int]:
    """The user's own directories above a folder, up to the outermost of the limits (O_PATH)."""
    found: list[int] = []
    last, above = 0, folder
    while len(found) < 40:
        above = at.open_parent(above)
        found.append(above)
        status = os.fstat(above)
        same = len(found) > 1 and os.path.samestat(status, os.fstat(found[-2]))
        if same or status.st_uid != os.geteuid():
            break
        if (status.st_dev, status.st_ino) in limits:
            last = len(found)
    for descriptor in found[last:]:
        os.close(descriptor)
    return found[:last]


def _open_way(way: list[int], change: Change, folder: int) -> None:
    """Let the subject pass, or no longer if no other storage folder is shared with it."""
    if change.access is None and way and _has_other(way[0], change.subject, folder):
        return
    inside = folder
    for descriptor in way:
        found = Found(descriptor, (), os.fstat(descriptor))
        scheme = scheme_of(found)
        if change.access is None:
            scheme.end_pass(found, change.subject)
        else:
            _note_exposed(descriptor, inside, change)
            scheme.let_pass(found, change.subject)
        inside = descriptor


def _has_other(storage: int, subject: Subject, folder: int) -> bool:
    own = os.fstat(folder).st_ino
    for descriptor, status in _children(storage):
        with contextlib.suppress(OSError, ValueError, Refused):
            if status.st_ino == own or not stat.S_ISDIR(status.st_mode):
                continue
            found = Found(descriptor, (), status)
            shares = scheme_of(found).shares(found)
            if any(share.subject == subject for share in shares):
                return True
    return False


def _note_exposed(folder: int, inside: int, change: Change) -> None:
    """What others may read in a folder, once they can traverse it and know the name."""
    own = os.fstat(inside).st_ino
    for name, status in _names(folder):
        readable = stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else stat.S_IROTH
        if status.st_mode & readable and status.st_ino != own and not stat.S_ISLNK(status.st_mode):
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
