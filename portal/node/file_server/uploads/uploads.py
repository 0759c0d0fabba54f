"""Uploads: created, continued, completed, listed, removed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass

from portal.node.file_server import at
from portal.node.file_server.contents import set_modified, write
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, parse, shown
from portal.node.file_server.roots import Place
from portal.node.file_server.uploads import parts
from portal.node.file_server.uploads.records import REPLACE, Record, Store, new_id, no_upload
from portal.node.file_server.uploads.writers import Writers

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator
    from typing import Any

    from portal.node.file_server.roots import Roots
    from portal.node.file_server.uploads.writers import Writer

DONE_SECONDS = 3600.0
"""How long a completed upload is remembered, for clients whose line broke before the answer."""
_READ = 1024 * 1024


@dataclass(frozen=True)
class Chunk:
    """A part of a file that arrives."""

    offset: int
    body: Iterable[bytes | memoryview]
    algorithm: str = ""
    """Of its checksum; "" for none."""
    digest: bytes = b""
    on_conflict: str = ""
    """Replaces what was said at the creation."""


class Uploads:
    """The uploads of this user on this host."""

    def __init__(self, roots: Roots, store: Store, hours: float) -> None:
        self._roots = roots
        self._store = store
        self._deadlines = roots.deadlines
        self._seconds = hours * 3600
        self._writers = Writers()
        self._hashes: dict[str, tuple[int, Any]] = {}
        """Running SHA-256 by upload, with the number of bytes that it has seen."""

    # Creation

    @contextlib.contextmanager
    def _target(self, record: Record) -> Iterator[Place]:
        """The place of the file to be, in folders that are made if they are missing."""
        location = parse(record.path)
        if not location.names:
            raise Refused(422, "value", "The name of the file is missing.", "path")
        self._probe(location)
        parts.make_folders(self._roots, location)
        follow = record.on_conflict == REPLACE
        with self._roots.place(location, follow=follow, to_change=True) as place:
            parts.check_target(place, record.on_conflict)
            yield place

    def _probe(self, location: Location) -> None:
        """Raise Refused (503) if the file system does not answer."""
        area = self._roots.area(location)
        self._deadlines.call(location.root, lambda: self._roots.probe(area))

    def _get(self, id: str) -> Record:
        """An upload's record, once its file system has answered; raises Refused."""
        record = self._deadlines.call("uploads", lambda: self._store.get(id))
        if not record.resumable:
            raise no_upload()
        self._probe(parse(record.path))
        return record

    def create(self, record: Record) -> None:
        """Begin an upload; raises Refused."""
        with self._target(record) as place:
            # Recorded first, so that the part is removed some day if this process is killed here.
            self._store.save(record)
            try:
                parts.make(place, record)
                self._store.save(record)
            except BaseException:
                self._remove(record)
                raise

    def write_whole(self, record: Record, chunk: Chunk) -> Record:
        """Write a file that comes with the creation, without a record; raises Refused."""
        with self._target(record) as place:
            name = parts.final_name(place, record.on_conflict, 0)
            body = checked(checked(chunk.body, chunk.algorithm, chunk.digest), *_sha256(record))
            target = Place(place.location, place.folder, name)
            write(target, body, replace=record.on_conflict == REPLACE, modified=record.modified)
        record.final, record.done = str(_sibling(record, place, name)), time.time()
        return record

    @contextlib.contextmanager
    def noted(self, location: Location) -> Iterator[bytes]:
        """A name for a file that is being written: it is cleaned up if this process is killed."""
        now = time.time()
        record = Record(new_id(), str(location), 0, now, on_conflict=REPLACE, resumable=False)
        with contextlib.suppress(OSError):  # it can be written all the same
            self._store.save(record)
        try:
            yield record.part
        finally:
            self._store.remove(record.id)

    # Continuation

    def state(self, id: str, connection: socket.socket) -> tuple[Record, int]:
        """An upload and how many bytes have arrived; completes it if only that is missing.

        Raises Refused: 404, 410 if the part has gone, 423 while another request writes,
        409 `exists` if all has arrived and the name is taken.
        """
        with self._writers.alone(id, connection) as writer:
            record = self._get(id)
            if record.done or self._has_appeared(record):
                return record, record.length
            with parts.opened(self._roots, record) as (place, file):
                size = os.fstat(file).st_size
                if size == record.length:
                    self._finish(record, place, file, writer, record.on_conflict)
            return record, size

    def append(self, id: str, chunk: Chunk, connection: socket.socket) -> tuple[Record, int]:
        """Add a chunk; returns the upload and its new offset. Raises Refused."""
        with self._writers.alone(id, connection) as writer:
            record = self._get(id)
            if record.done or self._has_appeared(record):
                _check_offset(chunk.offset, record.length)
                return record, record.length
            with parts.opened(self._roots, record) as (place, file):
                _check_offset(chunk.offset, os.fstat(file).st_size)
                offset = self._receive(record, file, chunk, writer)
                if offset == record.length:
                    how = chunk.on_conflict or record.on_conflict
                    self._finish(record, place, file, writer, how)
            return record, offset

    def _receive(self, record: Record, file: int, chunk: Chunk, writer: Writer) -> int:
        seen, running = self._hashes.pop(record.id, (0, None))
        if record.sha256 and seen == chunk.offset:
            running = running or hashlib.sha256()
        body = checked(chunk.body, chunk.algorithm, chunk.digest)
        try:
            return parts.receive(file, chunk.offset, record.length, body, writer, running)
        except BaseException:
            if chunk.algorithm:  # only what its checksum confirms counts
                os.ftruncate(file, chunk.offset)
            raise
        finally:
            if running is not None:
                self._hashes[record.id] = (os.fstat(file).st_size, running)

    # Completion

    def _finish(
        self, record: Record, place: Place, file: int, writer: Writer, on_conflict: str
    ) -> None:
        """Give the complete file its name; raises Refused."""
        self._verify(record, place, file, writer)
        name = parts.final_name(place, on_conflict, record.inode)
        record.final = str(_sibling(record, place, name))
        self._store.save(record)  # so that it is recognised if this process is killed now
        if record.modified is not None:
            set_modified(file, record.modified)
        parts.put(place, record.part, name, file, replace=on_conflict == REPLACE)
        record.done = time.time()
        # Recognised by its inode otherwise: the upload has not failed because of the record.
        with contextlib.suppress(OSError):
            self._store.save(record)

    def _has_appeared(self, record: Record) -> bool:
        """Whether the file got its name by a process that was killed right after that."""
        if not record.final or parts.status(self._roots, record) is not None:
            return False
        try:
            with self._roots.place(parse(record.final), follow=False) as place:
                found = place.status()
        except Refused:
            return False
        return (found.st_ino, found.st_size) == (record.inode, record.length)

    def _verify(self, record: Record, place: Place, file: int, writer: Writer) -> None:
        """Compare the SHA-256 if the client named one; raises Refused."""
        if not record.sha256:
            return
        seen, running = self._hashes.pop(record.id, (0, None))
        if running is None or seen != record.length:
            running = hashlib.sha256()
            for position in range(0, record.length, _READ):
                running.update(os.pread(file, _READ, position))
                writer.last = time.monotonic()
        if running.hexdigest() != record.sha256:
            at.unlink(place.folder, record.part)
            self._store.remove(record.id)
            raise mismatch()

    # What is unfinished

    def remove(self, id: str, connection: socket.socket) -> None:
        """End an upload and delete what has arrived; raises Refused."""
        with self._writers.alone(id, connection, force=True):
            self._remove(self._get(id))

    def _remove(self, record: Record) -> None:
        if not record.done:
            parts.remove(self._roots, record)
        self._hashes.pop(record.id, None)
        self._store.remove(record.id)

    def unfinished(self) -> list[dict[str, Any]]:
        """The uploads that can go on, the newest first; raises Refused (503)."""
        return self._deadlines.call("uploads", self._unfinished)

    def _unfinished(self) -> list[dict[str, Any]]:
        found = []
        for record in self._store:
            over = record.done or not record.resumable
            status = None if over else parts.status(self._roots, record)
            if status is not None:
                found.append(self._describe(record, status))
        return sorted(found, key=lambda upload: -upload["created"])

    def _describe(self, record: Record, status: os.stat_result) -> dict[str, Any]:
        return {
            "id": record.id,
            "path": record.path,
            "name": shown(parse(record.path).name),
            "length": record.length,
            "offset": status.st_size,
            "on_conflict": record.on_conflict,
            "created": record.created,
            "expires": status.st_mtime + self._seconds,
        }

    def expires(self) -> float:
        """When an upload expires that somebody writes to now, in seconds since the epoch."""
        return time.time() + self._seconds

    def clean(self) -> int:
        """Remove what nobody has continued for too long; returns how many are left."""
        left = 0
        for record in list(self._store):
            try:
                left += not self._clean(record)
            except (Refused, OSError):
                left += 1
        return left

    def _clean(self, record: Record) -> bool:
        """Whether the upload was removed or is complete; raises Refused if it is in use."""
        with self._writers.alone(record.id):
            status = None if record.done else parts.status(self._roots, record)
            last = status.st_mtime if status else record.done or record.created
            late = time.time() - last > (DONE_SECONDS if record.done else self._seconds)
            if late:
                self._check_unused(record)
                self._remove(record)
            return late or bool(record.done)

    def _check_unused(self, record: Record) -> None:
        """Raise Refused if another process writes to the part."""
        try:
            with parts.opened(self._roots, record):
                pass
        except Refused as refused:
            if refused.code != "gone":  # it is removed by its name, whatever it is
                raise


def _check_offset(offset: int, size: int) -> None:
    if offset != size:
        raise Refused(409, "offset", f"{size} bytes of this upload have arrived.", "Upload-Offset")


def _sibling(record: Record, place: Place, name: bytes) -> Location:
    """The location of a name in the target's folder."""
    location = parse(record.path)
    return location if name == place.name else location.parent.child(name)


def _sha256(record: Record) -> tuple[str, bytes]:
    return ("sha256", bytes.fromhex(record.sha256)) if record.sha256 else ("", b"")


def checked(
    body: Iterable[bytes | memoryview], algorithm: str, digest: bytes
) -> Iterable[bytes | memoryview]:
    """The body; raises Refused (460) at its end if its checksum differs."""
    if not algorithm:
        return body
    return _checked(body, hashlib.new(algorithm), digest)


def _checked(
    body: Iterable[bytes | memoryview], running: Any, digest: bytes
) -> Iterator[bytes | memoryview]:
    for piece in body:
        running.update(piece)
        yield piece
    if running.digest() != digest:
        raise mismatch()


def mismatch() -> Refused:
    """The answer if a checksum differs (the status is defined by tus)."""
    return Refused(460, "checksum", "What arrived differs from what was sent. Send it again.")
