"""Uploads: create, append, complete, list and remove."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, parse, shown
from portal.node.file_server.roots import Dentry
from portal.node.file_server.uploads import parts, recovery, whole
from portal.node.file_server.uploads.records import REPLACE, Record, Store, new_id, no_upload
from portal.node.file_server.uploads.whole import Body
from portal.node.file_server.uploads.writers import Writers

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator
    from typing import Any

    from portal.node.file_server.roots import Roots
    from portal.node.file_server.uploads.writers import Writer

DONE_SECONDS = 3600.0
"""How long a completed upload is recorded, for clients that did not receive the response."""
_READ = 1024 * 1024


@dataclass(frozen=True)
class Chunk:
    """Data of an upload from one request."""

    offset: int
    body: Iterable[bytes | memoryview]
    algorithm: str = ""
    """Algorithm of the checksum; "" for none."""
    digest: bytes = b""
    on_conflict: str = ""
    """Replaces the value of the creation."""


class Uploads:
    """The uploads of this user on this host."""

    def __init__(self, roots: Roots, store: Store, hours: float) -> None:
        self._roots = roots
        self._store = store
        self._deadlines = roots.deadlines
        self._seconds = hours * 3600
        self._writers = Writers()
        self._hashes: dict[str, tuple[int, Any]] = {}
        """Running SHA-256 by upload, with the number of bytes that it covers."""

    # Creation

    @contextlib.contextmanager
    def _target(self, record: Record) -> Iterator[Dentry]:
        """Resolve the target, and create missing folders above it."""
        location = parse(record.path)
        if not location.names:
            raise Refused(422, "value", "The name of the file is missing.", "path")
        self._probe(location)
        parts.make_folders(self._roots, location)
        follow = record.on_conflict == REPLACE
        with self._roots.resolve(location, follow=follow, to_change=True) as dentry:
            parts.check_target(dentry, record.on_conflict)
            yield dentry

    def _probe(self, location: Location) -> None:
        """Raise Refused (503) if the file system does not answer."""
        area = self._roots.area(location)
        self._deadlines.call(location.root, lambda: self._roots.probe(area))

    def _get(self, id: str) -> Record:
        """Return a record after its file system has answered; raises Refused."""
        record = self._deadlines.call("uploads", lambda: self._store.get(id))
        if not record.resumable:
            raise no_upload()
        self._probe(parse(record.path))
        return record

    def create(self, record: Record) -> None:
        """Create an upload; raises Refused."""
        with self._target(record) as dentry:
            # Recorded first, so that the part is cleaned up if this process is killed here.
            self._store.save(record)
            try:
                parts.make(dentry, record)
                self._store.save(record)
            except BaseException:
                self._remove(record)
                raise

    def write_whole(self, record: Record, chunk: Chunk) -> Record:
        """Write a file that a creation request contains, without resuming; raises Refused."""
        with self._target(record) as dentry:
            name = parts.final_name(dentry, record.on_conflict, 0)
            pieces = checked(checked(chunk.body, chunk.algorithm, chunk.digest), *_sha256(record))
            record.final, record.resumable = str(_sibling(record, dentry, name)), False
            target = Dentry(dentry.location, dentry.folder, name)
            whole.save(self._store, record, target, Body(pieces, record.length))
        return record

    def save(self, dentry: Dentry, body: Body, *, on_conflict: str, modified: float | None) -> None:
        """Write a file that one request contains; raises Refused or OSError."""
        record = Record(
            new_id(),
            str(dentry.location),
            body.length or 0,
            time.time(),
            on_conflict,
            modified,
            resumable=False,
        )
        whole.save(self._store, record, dentry, body)

    # Continuation

    def state(self, id: str, connection: socket.socket) -> tuple[Record, int]:
        """Return an upload and its offset; completes it if all data have arrived.

        Raises Refused: 404, 410 if the part does not exist, 423 while another request writes,
        409 `exists` if all has arrived and the name exists.
        """
        with self._writers.exclusive(id, connection) as writer:
            record = self._get(id)
            if record.done or self._is_renamed(record):
                return record, record.length
            with parts.opened(self._roots, record) as (dentry, part, file):
                size = os.fstat(file).st_size
                if size == record.length:
                    self._finish(record, dentry, part, file, writer, record.on_conflict)
            return record, size

    def append(self, id: str, chunk: Chunk, connection: socket.socket) -> tuple[Record, int]:
        """Add a chunk; returns the upload and its new offset. Raises Refused."""
        with self._writers.exclusive(id, connection) as writer:
            record = self._get(id)
            if record.done or self._is_renamed(record):
                _check_offset(chunk.offset, record.length)
                return record, record.length
            with parts.opened(self._roots, record) as (dentry, part, file):
                _check_offset(chunk.offset, os.fstat(file).st_size)
                offset = self._receive(record, file, chunk, writer)
                if offset == record.length:
                    on_conflict = chunk.on_conflict or record.on_conflict
                    self._finish(record, dentry, part, file, writer, on_conflict)
            return record, offset

    def _receive(self, record: Record, file: int, chunk: Chunk, writer: Writer) -> int:
        hashed, digest = self._hashes.pop(record.id, (0, None))
        if record.sha256 and hashed == chunk.offset:
            digest = digest or hashlib.sha256()
        body = checked(chunk.body, chunk.algorithm, chunk.digest)
        try:
            return parts.receive(file, chunk.offset, record.length, body, writer, digest)
        except BaseException:
            if chunk.algorithm:  # keep only data that the checksum confirms
                os.ftruncate(file, chunk.offset)
            raise
        finally:
            if digest is not None:
                self._hashes[record.id] = (os.fstat(file).st_size, digest)

    # Completion

    def _finish(
        self,
        record: Record,
        dentry: Dentry,
        part: Dentry,
        file: int,
        writer: Writer,
        on_conflict: str,
    ) -> None:
        """Let the complete part become the file; raises Refused."""
        self._verify(record, part, file, writer)
        name = parts.final_name(dentry, on_conflict, record.inode)
        record.final = str(_sibling(record, dentry, name))
        self._store.save(record)  # recognized afterwards even if this process is killed
        target = Dentry(dentry.location, dentry.folder, name)
        parts.put(target, part, file, whole.completion(self._store, record, on_conflict))
        record.done = time.time()
        # Without this record, _is_renamed() recognizes the file by its inode.
        with contextlib.suppress(OSError):
            self._store.save(record)

    def _is_renamed(self, record: Record) -> bool:
        """Whether a process was killed right after the part had become the file."""
        if not record.final or parts.status(self._roots, record) is not None:
            return False
        try:
            with self._roots.resolve(parse(record.final), follow=False) as dentry:
                status = dentry.status()
        except Refused:
            return False
        is_it = status.st_ino in (record.inode, record.kept)
        return is_it and status.st_size == record.length

    def _verify(self, record: Record, part: Dentry, file: int, writer: Writer) -> None:
        """Compare the SHA-256 if the client sent one; raises Refused."""
        if not record.sha256:
            return
        hashed, digest = self._hashes.pop(record.id, (0, None))
        if digest is None or hashed != record.length:
            digest = hashlib.sha256()
            for position in range(0, record.length, _READ):
                digest.update(os.pread(file, _READ, position))
                writer.last = time.monotonic()
        if digest.hexdigest() != record.sha256:
            at.unlink(part.folder, part.name)
            self._store.remove(record.id)
            raise mismatch()

    # Unfinished uploads

    def remove(self, id: str, connection: socket.socket) -> None:
        """Cancel an upload and delete its data; raises Refused."""
        with self._writers.exclusive(id, connection, force=True):
            self._remove(self._get(id))

    def _remove(self, record: Record) -> None:
        if not record.done:
            parts.remove(self._roots, record)
        self._hashes.pop(record.id, None)
        self._store.remove(record.id)

    def unfinished(self) -> list[dict[str, Any]]:
        """The resumable uploads, the newest first; raises Refused (503)."""
        return self._deadlines.call("uploads", self._unfinished)

    def _unfinished(self) -> list[dict[str, Any]]:
        uploads = []
        for record in self._store:
            over = record.done or not record.resumable
            status = None if over else parts.status(self._roots, record)
            if status is not None:
                uploads.append(self._describe(record, status))
        return sorted(uploads, key=lambda upload: -upload["created"])

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
        """The expiry of an upload that is written to now, in seconds since the epoch."""
        return time.time() + self._seconds

    def clean(self) -> int:
        """Complete files that a killed server left half written, and remove expired uploads.

        Returns the number of others.
        """
        left = 0
        for record in sorted(self._store, key=lambda record: not record.kept):
            try:
                left += not self._clean(record)
            except (Refused, OSError):
                left += 1
        return left

    def _clean(self, record: Record) -> bool:
        """Whether the upload was removed or is complete; raises Refused if it is in use."""
        with self._writers.exclusive(record.id):
            if record.kept and not record.done and self._recover(record):
                return True
            status = None if record.done else parts.status(self._roots, record)
            last = status.st_mtime if status else record.done or record.created
            late = time.time() - last > (DONE_SECONDS if record.done else self._seconds)
            if late:
                self._check_unused(record)
                self._remove(record)
            return late or bool(record.done)

    def _recover(self, record: Record) -> bool:
        """Whether a file is whole again that was being written in place.

        Raises Refused or OSError if it cannot be reached at the moment.
        """
        try:
            is_complete = recovery.complete(self._roots, record)
        except Refused as refused:
            if refused.status >= 423:
                raise
            return False  # its folder is gone, perhaps for a while
        if is_complete and record.resumable:
            record.done = time.time()
            self._store.save(record)
        else:
            self._store.remove(record.id)
        return True

    def _check_unused(self, record: Record) -> None:
        """Raise Refused if another process writes to the part."""
        try:
            with parts.opened(self._roots, record):
                pass
        except Refused as refused:
            if refused.code != "gone":  # a missing or exchanged part does not matter
                raise


def _check_offset(offset: int, size: int) -> None:
    if offset != size:
        raise Refused(409, "offset", f"{size} bytes of this upload have arrived.", "Upload-Offset")


def _sibling(record: Record, dentry: Dentry, name: bytes) -> Location:
    """The location of a name in the target's folder."""
    location = parse(record.path)
    return location if name == dentry.name else location.parent.child(name)


def _sha256(record: Record) -> tuple[str, bytes]:
    return ("sha256", bytes.fromhex(record.sha256)) if record.sha256 else ("", b"")


def checked(
    body: Iterable[bytes | memoryview], algorithm: str, digest: bytes
) -> Iterable[bytes | memoryview]:
    """Yield the body; raises Refused (460) at its end if its checksum differs."""
    if not algorithm:
        return body
    return _checked(body, hashlib.new(algorithm), digest)


def _checked(
    body: Iterable[bytes | memoryview], actual: Any, digest: bytes
) -> Iterator[bytes | memoryview]:
    for piece in body:
        actual.update(piece)
        yield piece
    if actual.digest() != digest:
        raise mismatch()


def mismatch() -> Refused:
    """The refusal if a checksum differs (the status is defined by tus)."""
    return Refused(460, "checksum", "What arrived differs from what was sent. Send it again.")
