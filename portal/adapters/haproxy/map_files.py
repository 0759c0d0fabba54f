"""The files from which HAProxy reads its maps at each start and reload."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from portal.errors import Unavailable

ROUTES, BACKGROUND, HUB = "routes.map", "background.map", "hub.map"
MAPS = (ROUTES, BACKGROUND, HUB)
CANARY = "slipway"
"""An entry of the routes that exists as long as they are complete."""
_LOCK = "routes.lock"
_PATIENCE = 15.0
"""Seconds that a change waits for others, and for a reload."""
_PAUSE = 0.005


class MapFiles:
    """Maps in a folder, each replaced as a whole.

    Whoever changes a map, or has HAProxy read the files, holds the lock of the folder: so a new
    process of HAProxy never reads what is about to be revoked, nor misses what has been added.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._held = threading.local()

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the lock, in this thread also repeatedly; raises Unavailable after some seconds."""
        if getattr(self._held, "depth", 0):
            self._held.depth += 1
            try:
                yield
            finally:
                self._held.depth -= 1
            return
        try:
            descriptor = os.open(
                self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
        except OSError as error:
            text = f"{self._folder / _LOCK} cannot be opened: {error.strerror}"
            raise Unavailable(text) from error
        try:
            _lock(descriptor)
            self._held.depth = 1
            yield
        finally:
            self._held.depth = 0
            os.close(descriptor)

    def is_complete(self) -> bool:
        """Whether the file has all routes, so that a reload loses none."""
        try:
            with (self._folder / ROUTES).open(encoding="utf-8") as file:
                return file.readline().startswith(f"{CANARY} ")
        except OSError:
            return False

    def read(self, name: str) -> dict[str, str]:
        """The entries of a map; none if its file is missing."""
        try:
            text = (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        lines = (line.split(" ", 1) for line in text.splitlines())
        return {fields[0]: fields[1] for fields in lines if len(fields) == 2}

    def write(self, name: str, entries: Mapping[str, str]) -> None:
        """Replace a map; raises OSError, and then the file is empty.

        An empty one closes all doors until the worker has opened the right ones; the old one would
        open those that have been shut.
        """
        file = self._folder / name
        draft = file.with_name(f".{name}.{secrets.token_hex(4)}")
        order = sorted(entries, key=lambda key: (key != CANARY, key))  # is_complete reads one line
        try:
            with draft.open("x", encoding="utf-8") as stream:
                draft.chmod(0o600)
                stream.writelines(f"{key} {entries[key]}\n" for key in order)
            draft.replace(file)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
                file.unlink(missing_ok=True)
                file.touch(0o600)
            raise


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable("The proxy in front of the apps is busy. Try again.") from None
            time.sleep(_PAUSE)
        else:
            return
