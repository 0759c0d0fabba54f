"""Write locks of WebDAV (RFC 4918, 6 and 7), in the memory of this file server.

They bind the WebDAV programs of one user on one host: colleagues, jobs and the user's own requests
at other doors do not see them. They end with this process.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from dataclasses import dataclass

from portal.node.file_server import at
from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from portal.node.file_server.location import Location
    from portal.node.file_server.roots import Dentry

    Place = tuple[bytes, ...]

MOST = 1000
LEAST_SECONDS, MOST_SECONDS = 60, 3600
"""Bounds of a lock's timeout. The file server does not end while locks are held, so the upper one
bounds how long one that a program left behind keeps it running."""


def place_of(dentry: Dentry) -> Place:
    """The names of the path that a directory entry has now; raises OSError.

    Storage areas may contain each other, so several locations can lead to one place.
    """
    names = os.fsencode(at.current_path(dentry.folder)).split(b"/")
    return tuple(name for name in (*names, dentry.name) if name not in (b"", b"."))


@dataclass
class Lock:
    """A lock on a file, or on a folder and (`is_deep`) all that is in it."""

    location: Location
    """As in the request that created it."""
    place: Place
    is_exclusive: bool
    is_deep: bool
    owner: str
    """What the program says about who holds it, as XML; may be empty."""
    token: str = ""
    expires: float = 0.0
    """By time.monotonic()."""

    def covers(self, place: Place) -> bool:
        """Whether a place is locked by it."""
        return place == self.place or (self.is_deep and is_below(place, self.place))

    @property
    def seconds(self) -> int:
        """The remaining time."""
        return max(round(self.expires - time.monotonic()), 0)


def is_below(place: Place, above: Place) -> bool:
    """Whether a place is inside of another one."""
    return len(place) > len(above) and place[: len(above)] == above


class Locks:
    """All locks of this file server."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, Lock] = {}

    def __bool__(self) -> bool:
        """Whether any lock is held."""
        with self._guard:
            return bool(self._current())

    def _current(self) -> Collection[Lock]:
        now = time.monotonic()
        for token in [each.token for each in self._locks.values() if each.expires <= now]:
            del self._locks[token]
        return self._locks.values()

    def add(self, lock: Lock, seconds: int) -> Lock | None:
        """Add a lock and give it a token; returns the one that prevents it, if there is any.

        Raises Refused (503) if there are too many.
        """
        with self._guard:
            for other in self._current():
                meets = other.covers(lock.place) or lock.covers(other.place)
                if meets and (other.is_exclusive or lock.is_exclusive):
                    return other
            if len(self._locks) >= MOST:
                words = "Your programs hold too many locks. Close some files, or wait an hour."
                raise Refused(503, "busy", words)
            lock.token = f"opaquelocktoken:{uuid.uuid4()}"
            lock.expires = time.monotonic() + seconds
            self._locks[lock.token] = lock
        return None

    def covering(self, place: Place) -> list[Lock]:
        """The locks of a place."""
        with self._guard:
            return [lock for lock in self._current() if lock.covers(place)]

    def refresh(self, lock: Lock, seconds: int) -> None:
        """Start a lock's time again."""
        lock.expires = time.monotonic() + seconds

    def remove(self, locks: Iterable[Lock]) -> None:
        """Remove locks, which may have ended meanwhile."""
        with self._guard:
            for lock in locks:
                self._locks.pop(lock.token, None)

    def inside(self, place: Place) -> list[Lock]:
        """The locks of what is in a folder."""
        with self._guard:
            return [lock for lock in self._current() if is_below(lock.place, place)]

    def at(self, place: Place) -> list[Lock]:
        """The locks of this very place."""
        with self._guard:
            return [lock for lock in self._current() if lock.place == place]

    def preventing(self, place: Place, tokens: Collection[str], *, whole: bool) -> Lock | None:
        """The lock that prevents a change of a place by who has sent these tokens; or None.

        `whole`: the name is created, deleted or given to something else, which also changes the
        folder above and everything inside.
        """
        places = [place]
        if whole:
            places += [place[:-1], *(lock.place for lock in self.inside(place))]
        for each in places:
            locks = self.covering(each)
            # Of shared locks, one is enough.
            if locks and not any(lock.token in tokens for lock in locks):
                return locks[0]
        return None
