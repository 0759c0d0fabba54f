"""One operation: its request and its progress."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from dataclasses import dataclass, field

from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.location import PART_PREFIX, Location, shown
from portal.node.file_server.tree.tree import LOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_PROBLEMS = 100
"""Problems that are listed; further ones are only counted."""
MOST_ITEMS = 10
"""Items by which an operation is recognized; further ones are only counted."""
HANGING_SECONDS = 10
LONGEST_PATH = 12_000
"""Characters; trees can be deeper than any path may be long."""
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
CANCELLED, INTERRUPTED = "cancelled", "interrupted"
ASIDE = b".old"
"""Ends the name of a part that is a folder, with what is replaced under its own name."""
_STOPPING = {"full", "quota", "read_only", "away"}
"""Codes of refusals that end the operation."""


class Cancelled(Exception):
    """The user has cancelled the operation."""


@dataclass(eq=False)
class Operation:
    """An operation on several items, carried out by one thread and read by others."""

    kind: str
    items: tuple[Location, ...]
    to: Location | None = None
    on_conflict: str = "refuse"
    mode: str = ""
    url: str = ""
    """What a file is fetched from."""
    sha256: str = ""
    """Of the file that is fetched, in hexadecimal; "" if the user gives none."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: str = WAITING
    """WAITING while too many other operations are running."""
    files: int = 0
    """Files and links; a move within one file system counts its items."""
    files_total: int | None = None
    size: int = 0
    """Bytes, holes included."""
    size_total: int | None = None
    current: str = ""
    item_count: int = 0
    skipped: int = 0
    detail: str = ""
    """The result in words."""
    problems: list[dict[str, str]] = field(default_factory=list)
    problem_count: int = 0
    started: float = field(default_factory=time.time)
    ended: float | None = None
    parts: list[int] = field(default_factory=list)
    """Inodes of files that were created, or moved aside, under the names of parts."""
    advanced: float = field(default_factory=time.monotonic)
    """The last progress, by time.monotonic()."""
    over: threading.Event = field(default_factory=threading.Event)
    is_listed: bool = True
    """False for one within a request: it is recorded only to clean up if the process is killed."""
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _names: int = 0

    def __post_init__(self) -> None:
        self.item_count = self.item_count or len(self.items)

    @property
    def part_prefix(self) -> bytes:
        """Prefix of the names of incomplete files in the destination."""
        return PART_PREFIX + self.id.encode() + b"-"

    def new_part(self) -> bytes:
        """Return a new name for an incomplete file in the destination."""
        self._names += 1
        return self.part_prefix + str(self._names).encode()

    def cancel(self) -> None:
        """Request the end, at the next step."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise Cancelled if the end was requested; to be called at each step."""
        self.advanced = time.monotonic()
        if self._cancelled.is_set():
            raise Cancelled

    def add_bytes(self, count: int) -> None:
        """Add progress within a file; raises Cancelled."""
        self.size += count
        self.check()

    def problem(self, location: Location, detail: str) -> None:
        """Record a problem with one file."""
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            name = shown(location.name) or location.root
            while len(str(location)) > LONGEST_PATH:
                location = location.parent
            self.problems.append({"path": str(location), "name": name, "detail": detail})

    @contextlib.contextmanager
    def problems_of(self, location: Location) -> Iterator[None]:
        """Record errors of the body as problems; raises those that end the operation."""
        try:
            yield
        except OSError as error:
            self.note(location, refusal_of(error))
        except Refused as error:
            if error.code == LOST:
                raise
            self.note(location, error)

    def note(self, location: Location, error: Refused) -> None:
        """Record an error as a problem; raises it if the operation cannot continue."""
        if error.code in _STOPPING:
            raise error
        self.problem(location, error.detail)

    def end(self, state: str, detail: str) -> None:
        """Record the end."""
        self.state, self.detail, self.ended = state, detail, time.time()
        self.current = ""
        self.over.set()

    @property
    def silence(self) -> float:
        """Seconds since the last progress of a running operation."""
        return time.monotonic() - self.advanced if self.state == RUNNING else 0.0

    def as_json(self, most_problems: int = MOST_PROBLEMS) -> dict[str, Any]:
        """The operation in replies."""
        files, size = self.files, self.size
        files_total, size_total = self.files_total, self.size_total
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "items": [str(item) for item in self.items[:MOST_ITEMS]],
            "item_count": self.item_count,
            "to": str(self.to) if self.to else "",
            "on_conflict": self.on_conflict,
            "mode": self.mode,
            "url": self.url,
            "files": files,
            "files_total": None if files_total is None else max(files, files_total),
            "bytes": size,
            "bytes_total": None if size_total is None else max(size, size_total),
            "current": self.current,
            "skipped": self.skipped,
            "problems": self.problems[:most_problems],
            "problem_count": self.problem_count,
            "detail": self.detail or self._hanging(),
            "started": self.started,
            "ended": self.ended,
        }

    def _hanging(self) -> str:
        seconds = int(self.silence)
        if seconds < HANGING_SECONDS:
            return ""
        return f"The file system has not answered for {seconds} seconds."
