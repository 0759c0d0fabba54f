"""Disk usage of folders, counted in the background."""

from __future__ import annotations

import stat
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.tree.tree import ENTER, ITEM, Tree, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from portal.node.file_server.location import Location
    from portal.node.file_server.roots import Roots

AT_ONCE = 2
KEPT_SECONDS = 600.0
STUCK_SECONDS = 30.0
"""A count without progress for so long counts as hanging, and another one may start."""
MOST_WAITING = 200
ANSWER_SECONDS = 0.3


@dataclass(eq=False)
class Count:
    """A count, complete or in progress."""

    location: Location
    bytes: int = 0
    """The sizes of the files; holes count."""
    disk_bytes: int = 0
    files: int = 0
    folders: int = 0
    unreadable: int = 0
    """Folders that the user may not read, or that were deleted meanwhile."""
    error: Refused | None = None
    counted: float | None = None
    advanced: float = field(default_factory=time.monotonic)
    over: threading.Event = field(default_factory=threading.Event)

    def as_json(self) -> dict[str, Any]:
        """The count in replies."""
        return {
            "bytes": self.bytes,
            "disk_bytes": self.disk_bytes,
            "files": self.files,
            "folders": self.folders,
            "unreadable": self.unreadable,
            "complete": self.counted is not None,
            "counted": self.counted or time.time(),
        }


class Usage:
    """Counts folders, two at once, and keeps the results for ten minutes."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._counts: dict[Location, Count] = {}
        self._waiting: deque[Count] = deque()
        self._running: list[Count] = []

    @property
    def is_busy(self) -> bool:
        """Whether any count is going on."""
        with self._lock:
            return bool(self._running)

    def get(self, location: Location, *, again: bool = False) -> Count:
        """Return the count of a folder, perhaps in progress; raises Refused.

        `again` starts a new count if the last one is complete.
        """
        with self._lock:
            self._prune()
            count = self._counts.get(location)
            if count is None or (again and count.counted is not None):
                if len(self._waiting) >= MOST_WAITING:
                    raise Refused(503, "busy", "Too many folders are being counted. Try later.")
                count = self._counts[location] = Count(location)
                self._waiting.append(count)
            self._launch()
        count.over.wait(ANSWER_SECONDS)
        if count.error:
            raise count.error
        return count

    def _prune(self) -> None:
        old = time.time() - KEPT_SECONDS
        for location, count in list(self._counts.items()):
            if count.error or (count.counted is not None and count.counted < old):
                del self._counts[location]

    def _launch(self) -> None:
        late = time.monotonic() - STUCK_SECONDS
        while self._waiting:
            stuck = sum(count.advanced < late for count in self._running)
            if len(self._running) - stuck >= AT_ONCE or stuck >= 4 * AT_ONCE:
                return
            count = self._waiting.popleft()
            count.advanced = time.monotonic()
            self._running.append(count)
            threading.Thread(target=self._run, args=(count,), daemon=True).start()

    def _run(self, count: Count) -> None:
        try:
            with (
                self._roots.resolve(count.location) as dentry,
                Tree(dentry.folder, one_file_system=True) as tree,
            ):
                _count(count, tree, dentry.name)
            count.counted = time.time()
        except Refused as error:
            count.error = error
        except OSError as error:
            count.error = refusal_of(error)
        finally:
            count.over.set()
            with self._lock:
                self._running.remove(count)
                self._launch()


def _count(count: Count, tree: Tree, name: bytes) -> None:
    linked: set[tuple[int, int]] = set()
    for step in tree.steps(name):
        count.advanced = time.monotonic()
        if step.kind == ITEM and step.status.st_nlink > 1:
            if identity(step.status) in linked:
                continue
            linked.add(identity(step.status))
        if step.kind == ITEM:
            count.files += 1
            _add(count, step.status)
        elif step.kind == ENTER:
            count.folders += bool(tree.depth)  # the folder itself is not one of those in it
            count.disk_bytes += step.status.st_blocks * 512
        elif step.error is not None:
            count.unreadable += 1


def _add(count: Count, status: os.stat_result) -> None:
    count.disk_bytes += status.st_blocks * 512
    if stat.S_ISREG(status.st_mode):
        count.bytes += status.st_size
