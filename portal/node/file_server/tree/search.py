"""Searches for names below a folder, breadth first."""

from __future__ import annotations

import os
import time
from collections import deque

from portal.node.file_server import at
from portal.node.file_server.entries import entry_at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import PART_PREFIX, Location, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from portal.node.file_server.roots import Roots

SECONDS = 5.0
MOST = 1000
LONGEST_TEXT = 255


def search(roots: Roots, location: Location, query: Mapping[str, str]) -> dict[str, Any]:
    """Entries whose name contains `text`, regardless of case; `hidden=true`: hidden ones, too.

    Links are listed, but not followed. Raises Refused.
    """
    text = query.get("text", "").strip()
    if not text or len(text) > LONGEST_TEXT:
        words = f"Write 1 to {LONGEST_TEXT} characters of the name that you search."
        raise Refused(422, "value", words, "text")
    with roots.folder(location) as folder:
        walk = _Search(location, folder, text, hidden=query.get("hidden") == "true")
        walk.run()
    return {"entries": walk.entries, "complete": walk.is_complete}


class _Search:
    def __init__(self, location: Location, folder: int, text: str, *, hidden: bool) -> None:
        self._location, self._folder = location, folder
        self._text, self._hidden = text.casefold(), hidden
        self._deadline = time.monotonic() + SECONDS
        self._waiting: deque[tuple[bytes, ...]] = deque([()])
        self.entries: list[dict[str, Any]] = []
        self.is_complete = True

    def run(self) -> None:
        """Search one folder after the other."""
        device = os.fstat(self._folder).st_dev
        while self._waiting and self.is_complete:
            names = self._waiting.popleft()
            try:
                folder = _open(self._folder, names)
            except OSError:
                continue  # deleted or replaced by a link meanwhile, or not permitted
            try:
                if os.fstat(folder).st_dev == device:
                    self._search_folder(folder, names)
            finally:
                os.close(folder)

    def _search_folder(self, folder: int, names: tuple[bytes, ...]) -> None:
        parent = Location(self._location.root, self._location.names + names)
        for name, is_folder in _entries(folder):
            if time.monotonic() > self._deadline:
                self.is_complete = False
                return
            if name.startswith(PART_PREFIX) or (name.startswith(b".") and not self._hidden):
                continue
            if self._text in shown(name).casefold() and not self._add(parent, folder, name):
                return
            if is_folder:
                self._waiting.append((*names, name))

    def _add(self, parent: Location, folder: int, name: bytes) -> bool:
        if len(self.entries) >= MOST:
            self.is_complete = False
        elif entry := entry_at(parent, folder, name):
            self.entries.append(entry)
        return self.is_complete


def _entries(folder: int) -> Iterator[tuple[bytes, bool]]:
    """Names and whether they are folders; nothing if it cannot be read any more."""
    try:
        yield from at.scan(folder)
    except OSError:
        return


def _open(folder: int, names: tuple[bytes, ...]) -> int:
    """Open a folder below another one without following links; raises OSError."""
    current = os.dup(folder)
    for name in names:
        try:
            deeper = at.open_at(current, name, at.READ_FOLDER)
        finally:
            os.close(current)
        current = deeper
    return current
