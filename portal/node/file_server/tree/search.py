"""Searches for names below a folder, the nearest first."""

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

    Links are found, never followed. Raises Refused.
    """
    text = query.get("text", "").strip()
    if not text or len(text) > LONGEST_TEXT:
        words = f"Write 1 to {LONGEST_TEXT} characters of the name that you search."
        raise Refused(422, "value", words, "text")
    with roots.folder(location) as folder:
        found = _Search(location, folder, text, hidden=query.get("hidden") == "true")
        found.run()
    return {"entries": found.entries, "complete": found.is_complete}


class _Search:
    def __init__(self, location: Location, folder: int, text: str, *, hidden: bool) -> None:
        self._location, self._folder = location, folder
        self._text, self._hidden = text.casefold(), hidden
        self._deadline = time.monotonic() + SECONDS
        self._waiting: deque[tuple[bytes, ...]] = deque([()])
        self.entries: list[dict[str, Any]] = []
        self.is_complete = True

    def run(self) -> None:
        """Look into one folder after the other."""
        device = os.fstat(self._folder).st_dev
        while self._waiting and self.is_complete:
            names = self._waiting.popleft()
            try:
                folder = _open(self._folder, names)
            except OSError:
                continue  # gone meanwhile, a link by now, or not for this user
            try:
                if os.fstat(folder).st_dev == device:
                    self._look(folder, names)
            finally:
                os.close(folder)

    def _look(self, folder: int, names: tuple[bytes, ...]) -> None:
        here = Location(self._location.root, self._location.names + names)
        for name, is_folder in _entries(folder):
            if time.monotonic() > self._deadline:
                self.is_complete = False
                return
            if name.startswith(PART_PREFIX) or (name.startswith(b".") and not self._hidden):
                continue
            if self._text in shown(name).casefold() and not self._add(here, folder, name):
                return
            if is_folder:
                self._waiting.append((*names, name))

    def _add(self, here: Location, folder: int, name: bytes) -> bool:
        if len(self.entries) >= MOST:
            self.is_complete = False
        elif found := entry_at(here, folder, name):
            self.entries.append(found)
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
