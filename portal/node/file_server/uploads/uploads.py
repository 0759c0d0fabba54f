"""Uploads: create, append, list and remove."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass

from portal.node.file_server.errors import Refused
from portal.node.file_server.location import parse, shown
from portal.node.file_server.roots import Dentry
from portal.node.file_server.uploads import parts, recovery, whole
from portal.node.file_server.uploads.concatenation import Concatenation
from portal.node.file_server.uploads.records import Record, Store, new_id
from portal.node.file_server.uploads.stored import DONE_SECONDS, StoredUploads, mismatch, sibling
from portal.node.file_server.uploads.whole import Body
from portal.node.file_server.uploads.writers import Writers
from portal.node.file_server.writing import reserve

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from portal.node.file_server.roots import Roots
    from portal.node.file_server.uploads.parts import OpenedPart
    from portal.node.file_server.uploads.writers import Writer

    Working = Callable[[], object]


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
    length: int | None = None
    """The length of the whole upload, which its creation deferred."""


@dataclass(frozen=True)
class State:
    """How much of an upload has arrived."""

    record: Record
    offset: int | None
    """None for a final upload that could not be joined."""
    problem: Refused | None = None
    """Why a complete upload does not get its final name."""


class Uploads:
    """The uploads of this user on this host."""

    def __init__(self, roots: Roots, store: Store, hours: float) -> None:
        self._roots = roots
        self._stored = StoredUploads(roots, store)
        self._writers = Writers()
        self._concatenation = Concatenation(self._stored, self._writers)
        self._seconds = hours * 3600

    # Creation

    def create(self, record: Record) -> None:
        """Create an upload; raises Refused."""
        if record.is_partial:
            self._concatenation.check_count()
        self._stored.create(record)

    def join(
        self, record: Record, connection: socket.socket, working: Working | None = None
    ) -> Record:
        """Create a final upload from partial ones, as Concatenation.join."""
        return self._concatenation.join(record, connection, working)

    def write_whole(self, record: Record, chunk: Chunk) -> Record:
        """Write a file that a creation request contains, without resuming; raises Refused."""
        with self._stored.target(record) as dentry:
            name = parts.final_name(dentry, record.on_conflict, 0)
            pieces = checked(checked(chunk.body, chunk.algorithm, chunk.digest), *_sha256(record))
            record.final, record.resumable = str(sibling(record, dentry, name)), False
            target = Dentry(dentry.location, dentry.folder, name)
            whole.save(self._stored.records, record, target, Body(pieces, record.length))
            self._stored.note_whole(record)
        return record

    def save(self, dentry: Dentry, body: Body, *, on_conflict: str, modified: float | None) -> None:
        """Write a file that one request contains; raises Refused or OSError."""
        record = Record(
            new_id(),
            str(dentry.location),
            body.length,
            time.time(),
            on_conflict,
            modified,
            resumable=False,
        )
        whole.save(self._stored.records, record, dentry, body)

    # Continuation

    def state(self, id: str, connection: socket.socket, working: Working | None = None) -> State:
        """Return the state of an upload; completes it if all data have arrived.

        Raises Refused: 404, 410 if the part does not exist, 423 while another request writes.
        """
        with self._writers.exclusive(id, connection, working=working) as writer:
            record = self._stored.get(id)
            if self._stored.is_done(record):
                return State(record, record.length)
            if record.is_final:
                return State(record, None)
            with parts.opened(self._roots, record) as (dentry, part, file):
                size = os.fstat(file).st_size
                try:
                    self._settle(record, (dentry, part, file), writer, record.on_conflict)
                except Refused as refused:
                    if refused.status != 409:
                        raise
                    return State(record, size, refused)
            return State(record, size)

    def append(
        self, id: str, chunk: Chunk, connection: socket.socket, working: Working | None = None
    ) -> tuple[Record, int]:
        """Add a chunk; returns the upload and its new offset. Raises Refused."""
        with self._writers.exclusive(id, connection, working=working) as writer:
            record = self._stored.get(id)
            if record.is_final:
                raise Refused(403, "final", "Data can only be added to its partial uploads.")
            if self._stored.is_done(record):
                _check_offset(chunk.offset, record.length or 0)
                return record, chunk.offset
            with parts.opened(self._roots, record) as (dentry, part, file):
                _check_offset(chunk.offset, os.fstat(file).st_size)
                self._set_length(record, file, chunk)
                offset = self._receive(record, file, chunk, writer)
                on_conflict = chunk.on_conflict or record.on_conflict
                self._settle(record, (dentry, part, file), writer, on_conflict)
            return record, offset

    def _set_length(self, record: Record, file: int, chunk: Chunk) -> None:
        """Record the length that the creation deferred; raises Refused."""
        if chunk.length is None or chunk.length == record.length:
            return
        if record.length is not None:
            detail = f"The length of this upload is {record.length} and stays."
            raise Refused(400, "value", detail, "Upload-Length")
        if chunk.length < chunk.offset:
            detail = f"{chunk.offset} bytes of this upload have arrived already."
            raise Refused(400, "value", detail, "Upload-Length")
        reserve(file, chunk.length)
        record.length = chunk.length
        self._stored.records.save(record)

    def _receive(self, record: Record, file: int, chunk: Chunk, writer: Writer) -> int:
        digest = self._stored.running_hash(record, chunk.offset)
        body = checked(chunk.body, chunk.algorithm, chunk.digest)
        try:
            return parts.receive(file, chunk.offset, record.length, body, writer, digest)
        except BaseException:
            if chunk.algorithm:  # keep only data that the checksum confirms
                os.ftruncate(file, chunk.offset)
            raise
        finally:
            if digest is not None:
                self._stored.keep_hash(record, digest, os.fstat(file).st_size)

    def _settle(self, record: Record, opened: OpenedPart, writer: Writer, on_conflict: str) -> None:
        """Give an upload its final name if all has arrived; raises Refused."""
        if not record.is_partial and os.fstat(opened[-1]).st_size == record.length:
            self._stored.finish(record, opened, writer, on_conflict)

    # Unfinished uploads

    def remove(self, id: str, connection: socket.socket) -> None:
        """Cancel an upload and delete its data; raises Refused."""
        with self._writers.exclusive(id, connection, force=True):
            self._stored.discard(self._stored.get(id))

    def unfinished(self) -> list[dict[str, Any]]:
        """The resumable uploads, the newest first; raises Refused (503)."""
        return self._roots.deadlines.call("uploads", self._unfinished)

    def _unfinished(self) -> list[dict[str, Any]]:
        uploads = []
        for record in self._stored.records:
            over = record.done or not record.resumable or record.is_final
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
            "is_partial": record.is_partial,
            "on_conflict": record.on_conflict,
            "created": record.created,
            "expires": self._expiry(record, status),
        }

    def expires(self, record: Record) -> float:
        """When an unfinished upload expires, in seconds since the epoch."""
        return self._expiry(record, parts.status(self._roots, record))

    def _expiry(self, record: Record, status: os.stat_result | None) -> float:
        last = status.st_mtime if status else record.done or record.created
        return last + (DONE_SECONDS if record.done else self._seconds)

    def clean(self) -> int:
        """Complete files that a killed server left half written, and remove expired uploads.

        Returns the number of others.
        """
        left = 0
        for record in sorted(self._stored.records, key=lambda record: not record.kept):
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
            late = time.time() > self._expiry(record, status)
            if late:
                self._check_unused(record)
                self._stored.discard(record)
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
            self._stored.note_done(record)
        else:
            self._stored.records.remove(record.id)
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
