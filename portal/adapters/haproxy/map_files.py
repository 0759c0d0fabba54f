"""The files from which HAProxy reads its maps at each start and reload."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path

from portal.errors import Unavailable

ROUTES, BACKGROUND, HUB = "routes.map", "background.map", "hub.map"
MAPS = (ROUTES, BACKGROUND, HUB)
CANARY = "slipway"
"""An entry of the routes that exists as long as they are complete."""
_LOCK = "routes.lock"
_PATIENCE = 15.0
"""Seconds that a change waits for other changes, or for a reload."""
_PAUSE = 0.005
_COMMENT = b"#"
_MOST_COMMENTS = 1000
"""A map is compacted once its removed entries exceed half of its lines by this number."""


class MapFiles:
    """Maps in a folder: single entries are changed in place, whole maps by replacing the file.

    The folder's lock is held while a map changes and while HAProxy reads the files: so a new
    HAProxy process neither reads an entry that is being revoked nor misses an added one.

    In place, an entry is appended as a comment, which its first byte then makes valid; a removed
    entry becomes a comment in the same way. So a crash at any line leaves complete entries only,
    and a HAProxy process that reads without the lock sees no partial and no removed entry.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._lock_state = threading.local()

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the lock, reentrant within a thread; raises Unavailable after _PATIENCE seconds."""
        if getattr(self._lock_state, "depth", 0):
            self._lock_state.depth += 1
            try:
                yield
            finally:
                self._lock_state.depth -= 1
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
            self._lock_state.depth = 1
            yield
        finally:
            self._lock_state.depth = 0
            os.close(descriptor)

    def is_complete(self) -> bool:
        """Whether the routes file is complete, so that a reload loses no route."""
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
        lines = (line.split(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {fields[0]: fields[1] for fields in lines if len(fields) == 2}

    def set(self, name: str, key: str, value: str) -> None:
        """Set one entry in place. After an OSError the map has the previous entry or none."""
        line = f"{key} {value}\n".encode()
        with self._open(name) as file:
            data = _content(file)
            offset = _find(data, key)
            if offset is not None and data.startswith(line, offset):
                return
            gap = b"" if data[-1:] in (b"", b"\n") else b"\n"  # after a write that was cut off
            _put(file, len(data), gap + _COMMENT + line[1:])
            if offset is not None:
                _put(file, offset, _COMMENT)
            _put(file, len(data) + len(gap), line[:1])

    def remove(self, name: str, keys: Iterable[str]) -> None:
        """Remove entries in place. After an OSError the file is empty."""
        try:
            with self._open(name) as file:
                data = _content(file)
                for key in keys:
                    if (offset := _find(data, key)) is not None:
                        _put(file, offset, _COMMENT)
        except OSError:
            self._empty(name)
            raise

    def compact(self, name: str) -> None:
        """Rewrite a map without its removed entries if there are too many of them."""
        with self._open(name) as file:
            data = _content(file)
        comments = data.count(b"\n" + _COMMENT)
        if comments > _MOST_COMMENTS + data.count(b"\n") // 2:
            with suppress(OSError):
                self._replace(name, self.read(name))

    def _open(self, name: str) -> BufferedRandom:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.fdopen(os.open(self._folder / name, flags, 0o600), "r+b")

    def write(self, name: str, entries: Mapping[str, str]) -> None:
        """Replace a map. After an OSError the file is empty.

        An empty map denies access until the worker has restored the routes; the old map would
        grant access that has been revoked.
        """
        try:
            self._replace(name, entries)
        except OSError:
            self._empty(name)
            raise

    def _empty(self, name: str) -> None:
        file = self._folder / name
        with suppress(OSError):
            file.unlink(missing_ok=True)
            file.touch(0o600)

    def _replace(self, name: str, entries: Mapping[str, str]) -> None:
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
            raise


def _content(file: BufferedRandom) -> bytes:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _find(data: bytes, key: str) -> int | None:
    """The offset of the valid entry with this key; None without one."""
    head = key.encode() + b" "
    if data.startswith(head):
        return 0
    offset = data.find(b"\n" + head)
    return offset + 1 if offset >= 0 else None


def _put(file: BufferedRandom, offset: int, data: bytes) -> None:
    if os.pwrite(file.fileno(), data, offset) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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
