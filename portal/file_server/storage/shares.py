"""Shares of storage folders: who has access, and changes of that with progress."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from dataclasses import dataclass, field

from portal.file_server.errors import Refused, refusal_of
from portal.file_server.location import Location, shown
from portal.file_server.roots import O_PATH, Roots
from portal.file_server.storage.schemes import scheme_of
from portal.file_server.storage.subjects import Share, Subject
from portal.file_server.storage.walk import Found, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from portal.file_server.storage.schemes import Scheme

STORAGE = "storage"
WAIT_SECONDS = 3.0
"""How long a request waits for its change; larger folders go on in the background."""
MOST_CHANGES = 4
MOST_EXAMPLES = 20
_FOLDER = O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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
        self._lock = threading.Lock()

    def listing(self, location: Location) -> dict[str, Any]:
        """Who has access to a folder, and the last change of that; raises Refused."""
        with self._folder(location) as folder:
            found = Found(folder, (), os.fstat(folder))
            listed = scheme_of(found).shares(found)
            change = self._changes.get(location.name)
        return {
            "shares": [share.as_json() for share in listed],
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
            folder = os.dup(opened)
        try:
            self._register(location.name, change)
            work = threading.Thread(
                target=self._run, args=(folder, scheme, location, change), daemon=True
            )
            work.start()
        except BaseException:
            change.finished.set()
            os.close(folder)
            raise
        change.finished.wait(WAIT_SECONDS)
        if change.problem:
            raise Refused(409, "share", change.problem)
        return change

    def _register(self, name: bytes, change: Change) -> None:
        with self._lock:
            running = {n for n, c in self._changes.items() if not c.finished.is_set()}
            if name in running:
                raise Refused(
                    409, "busy", "Who has access to this folder is being changed. Wait a moment."
                )
            if len(running) >= MOST_CHANGES:
                raise Refused(503, "busy", "Other folders are being changed. Wait a moment.")
            self._changes[name] = change

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
        finally:
            os.close(folder)
            change.finished.set()

    def _limits(self) -> set[tuple[int, int]]:
        """The directories above which nothing is changed: the user's home and the storage."""
        found = set()
        for root in self._roots:
            with contextlib.suppress(OSError):
                status = os.stat(root.path)
                found.add((status.st_dev, status.st_ino))
        return found

    @contextlib.contextmanager
    def _folder(self, location: Location) -> Iterator[int]:
        """A storage folder of the user's own (O_PATH); raises Refused."""
        if location.root != STORAGE or len(location.names) != 1:
            raise Refused(409, "place", "Only your storage folders can be shared as a whole.")
        with self._roots.place(location, follow=False) as place:
            if stat.S_ISLNK(place.status().st_mode):
                raise Refused(409, "link", "This is a link. Share the folder that it leads to.")
            folder = os.open(place.name, _FOLDER, dir_fd=place.folder)
            try:
                if os.fstat(folder).st_uid != os.geteuid():
                    raise Refused(403, "permission", "Only a folder's owner can share it.")
                yield folder
            finally:
                os.close(folder)


def _apply(folder: int, scheme: Scheme, change: Change) -> None:
    """Change the folder and all that is in it; the folder itself first."""
    act = _action(scheme, change)
    check_links = change.access is not None and not _links_are_protected()
    problems: list[tuple[bytes, ...]] = []
    for found in walk(folder, problems):
        several = found.status.st_nlink > 1 and not found.is_folder
        if found.status.st_uid != os.geteuid() or (check_links and several):
            change.note_other(found.names)
            continue
        try:
            act(found)
        except OSError:
            if not found.names:
                raise
            change.note_other(found.names)
        change.done += 1
    for names in problems:
        change.note_other(names)


def _action(scheme: Scheme, change: Change) -> Callable[[Found], None]:
    access = change.access
    if access is None:
        return lambda found: scheme.revoke(found, change.subject)
    return lambda found: scheme.grant(found, change.subject, access)


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
        above = os.open("..", _FOLDER, dir_fd=above)
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
        listed = os.open(f"/proc/self/fd/{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for name in map(os.fsencode, os.listdir(listed)):
            with contextlib.suppress(OSError):
                yield name, os.stat(name, dir_fd=listed, follow_symlinks=False)
    finally:
        os.close(listed)


def _children(folder: int) -> Iterator[tuple[int, os.stat_result]]:
    for name, _ in _names(folder):
        try:
            child = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            continue
        try:
            yield child, os.fstat(child)
        finally:
            os.close(child)
