"""The files from which HAProxy reads its maps at each start and reload."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
_ID_DIGITS = 16
_HEAD = re.compile(rb"[#s]lipway ([0-9a-f]{%d})\n" % _ID_DIGITS)
_HEAD_SIZE = len(CANARY) + len(" \n") + _ID_DIGITS
_ENTRY = re.compile(rb"^([^#\s]\S*) .*\n", re.MULTILINE)


class MapFiles:
    """Maps in a folder: entries are changed in place, whole maps by replacing the file.

    The folder's lock is held while a map changes and while HAProxy reads the files: so a new
    HAProxy process neither reads an entry that is being revoked nor misses an added one.

    In place, entries are appended as comments, which their first bytes then make valid; a removed
    entry becomes a comment in the same way. So a crash at any line leaves complete entries only,
    and a HAProxy process that reads without the lock sees no partial and no removed entry.

    The first line has a random id: a process that knows it knows where earlier entries are, and
    reads only what was appended since. It is the CANARY's entry once the routes are complete.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._lock_state = threading.local()
        self._indexes: dict[str, _Index] = {}

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
            with (self._folder / ROUTES).open("rb") as file:
                return file.read(_HEAD_SIZE).startswith(f"{CANARY} ".encode())
        except OSError:
            return False

    def id(self, name: str) -> str:
        """The file's id, which is another one once a restart of HAProxy has emptied the file."""
        with self._opened(name) as (_, index):
            return index.id

    def set_complete(self, id: str) -> bool:
        """Mark the routes file as complete; False, without a change, if its id is another one."""
        with self._opened(ROUTES) as (descriptor, index):
            if index.id != id:
                return False
            _put(descriptor, 0, CANARY[:1].encode())
            return True

    def text(self, name: str) -> str:
        """The content of a map's file; "" if it is missing."""
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def read(self, name: str) -> dict[str, str]:
        """The entries of a map; none if its file is missing."""
        return parse(self.text(name))

    def set(self, name: str, entries: Mapping[str, str]) -> None:
        """Set entries in place. After an OSError each is the previous one, the new one or none."""
        with self._opened(name) as (descriptor, index):
            # By key: the line, and the offset of the entry that it replaces.
            changes: dict[str, tuple[bytes, int | None]] = {}
            for key, value in entries.items():
                line, offset = f"{key} {value}\n".encode(), index.find(descriptor, key)
                if offset is None or os.pread(descriptor, len(line), offset) != line:
                    changes[key] = line, offset
            if not changes:
                return
            end = os.fstat(descriptor).st_size
            gap = b"" if end == index.end else b"\n"  # after a write that was cut off
            lines = b"".join(_COMMENT + line[1:] for line, _ in changes.values())
            _put(descriptor, end, gap + lines)
            end += len(gap)
            for line, offset in changes.values():
                if offset is not None:
                    _put(descriptor, offset, _COMMENT)
                _put(descriptor, end, line[:1])
                end += len(line)

    def remove(self, name: str, keys: Iterable[str]) -> None:
        """Remove entries in place. After an OSError the file is empty."""
        try:
            with self._opened(name) as (descriptor, index):
                for key in keys:
                    if (offset := index.find(descriptor, key)) is not None:
                        _put(descriptor, offset, _COMMENT)
        except OSError:
            self._empty(name)
            raise

    def compact(self, name: str) -> None:
        """Rewrite a map without its removed entries if there are too many; under the lock."""
        text = self.text(name)
        if text.count("\n#") > _MOST_COMMENTS + text.count("\n") // 2:
            with suppress(OSError):
                self._replace(name, parse(text), name == ROUTES and self.is_complete())

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[int, _Index]]:
        """A map's file, with its index; one that another program has written is rewritten first."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with self.exclusively():
            descriptor = os.open(self._folder / name, flags, 0o600)
            try:
                if not _HEAD.match(os.pread(descriptor, _HEAD_SIZE, 0)):
                    self._replace(name, self.read(name), name == ROUTES and self.is_complete())
                    os.close(descriptor)
                    descriptor = os.open(self._folder / name, flags, 0o600)
                yield descriptor, self._index(name, descriptor)
            finally:
                os.close(descriptor)

    def _index(self, name: str, descriptor: int) -> _Index:
        id = os.pread(descriptor, _HEAD_SIZE, 0)[-_ID_DIGITS - 1 : -1].decode()
        index = self._indexes.get(name)
        if index is None or index.id != id:
            index = self._indexes[name] = _Index(id)
        index.read(descriptor)
        return index

    def write(self, name: str, entries: Mapping[str, str]) -> None:
        """Replace a map; it is not complete. After an OSError the file is empty.

        An empty map denies access until the worker has restored the routes; the old map would
        grant access that has been revoked.
        """
        try:
            self._replace(name, entries, False)
        except OSError:
            self._empty(name)
            raise

    def _empty(self, name: str) -> None:
        file = self._folder / name
        with suppress(OSError):
            file.unlink(missing_ok=True)
            file.touch(0o600)

    def _replace(self, name: str, entries: Mapping[str, str], is_complete: bool) -> None:
        file = self._folder / name
        draft = file.with_name(f".{name}.{secrets.token_hex(4)}")
        head = f"{CANARY} {secrets.token_hex(_ID_DIGITS // 2)}\n"
        try:
            with draft.open("x", encoding="utf-8") as stream:
                draft.chmod(0o600)
                stream.write(head if is_complete else f"#{head[1:]}")
                stream.writelines(f"{key} {value}\n" for key, value in entries.items())
            draft.replace(file)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise


class _Index:
    """The offsets of a file's entries, of which other processes may have removed some."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.end = _HEAD_SIZE
        """The end of the complete lines that were read."""
        self._offsets: dict[bytes, int] = {}

    def read(self, descriptor: int) -> None:
        """Read the lines that were appended since."""
        size = os.fstat(descriptor).st_size
        data = os.pread(descriptor, size - self.end, self.end) if size > self.end else b""
        for entry in _ENTRY.finditer(data):
            self._offsets[entry[1]] = self.end + entry.start()
        self.end += data.rfind(b"\n") + 1

    def find(self, descriptor: int, key: str) -> int | None:
        """The offset of the valid entry with this key; None without one."""
        name = key.encode()
        offset = self._offsets.get(name)
        if offset is None:
            return None
        if os.pread(descriptor, len(name) + 1, offset) != name + b" ":
            del self._offsets[name]  # a comment by now
            return None
        return offset


def parse(text: str) -> dict[str, str]:
    """The entries in a file's content, without the CANARY."""
    lines = (line.split(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    entries = {fields[0]: fields[1] for fields in lines if len(fields) == 2}
    entries.pop(CANARY, None)
    return entries


def _put(descriptor: int, offset: int, data: bytes) -> None:
    if os.pwrite(descriptor, data, offset) < len(data):
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
