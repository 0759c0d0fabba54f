"""Records together with their parts: looked up, created, completed and removed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections import OrderedDict

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, parse
from portal.node.file_server.roots import Dentry
from portal.node.file_server.state import make_private
from portal.node.file_server.uploads import parts, whole
from portal.node.file_server.uploads.records import REPLACE, Record, no_upload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from portal.node.file_server.roots import Roots
    from portal.node.file_server.uploads.records import Store
    from portal.node.file_server.uploads.writers import Writer

DONE_SECONDS = 3600.0
"""How long a completed upload is known, for clients that did not receive the response."""
MOST_WHOLE = 1000
PARTIALS = (".slipway", "files", "partial")
"""Below the home directory: where partial uploads are that name no location."""
PARTIAL_PATH = "/".join(("home", *PARTIALS, "upload"))
_READ = 1024 * 1024


class _Whole:
    """The last files that came with their creation; in memory, since nothing resumes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: OrderedDict[str, Record] = OrderedDict()

    def add(self, record: Record) -> None:
        with self._lock:
            self._records[record.id] = record
            if len(self._records) > MOST_WHOLE:
                self._records.popitem(last=False)

    def get(self, id: str) -> Record | None:
        with self._lock:
            record = self._records.get(id)
        return record if record and time.time() - record.done < DONE_SECONDS else None

    def remove(self, id: str) -> None:
        with self._lock:
            self._records.pop(id, None)


class StoredUploads:
    """The recorded uploads, with their parts."""

    def __init__(self, roots: Roots, store: Store) -> None:
        self.roots, self.records = roots, store
        self._deadlines = roots.deadlines
        self._whole = _Whole()
        self._hashes: dict[str, tuple[int, Any]] = {}
        """Running SHA-256 by upload, with the number of bytes that it covers."""

    def get(self, id: str) -> Record:
        """Return a record after its file system has answered; raises Refused."""
        record = self._whole.get(id)
        if record is not None:
            return record
        record = self._deadlines.call("uploads", lambda: self.records.get(id))
        if not record.resumable:
            raise no_upload()
        self._probe(parse(record.path))
        return record

    def all(self) -> list[Record]:
        """All records; raises Refused (503)."""
        return self._deadlines.call("uploads", lambda: list(self.records))

    def _probe(self, location: Location) -> None:
        """Raise Refused (503) if the file system does not answer."""
        area = self.roots.area(location)
        self._deadlines.call(location.root, lambda: self.roots.probe(area))

    # Creation

    @contextlib.contextmanager
    def target(self, record: Record) -> Iterator[Dentry]:
        """Resolve the target, and create missing folders above it; raises Refused."""
        location = parse(record.path)
        if not location.names:
            raise Refused(422, "value", "The name of the file is missing.", "path")
        self._probe(location)
        if record.path == PARTIAL_PATH:
            make_private(os.path.join(self.roots.get(location.root).path, *PARTIALS))
        parts.make_folders(self.roots, location)
        follow = record.on_conflict == REPLACE
        with self.roots.resolve(location, follow=follow, to_change=True) as dentry:
            if not record.is_partial:
                parts.check_target(dentry, record.on_conflict)
            yield dentry

    def create(self, record: Record) -> None:
        """Record an upload and create its part; raises Refused."""
        with self.target(record) as dentry:
            # Recorded first, so that the part is cleaned up if this process is killed here.
            self.records.save(record)
            try:
                parts.make(dentry, record)
                self.records.save(record)
            except BaseException:
                self.discard(record)
                raise

    # Completion

    def note_whole(self, record: Record) -> None:
        """Remember a file that came with its creation."""
        self._whole.add(record)

    def running_hash(self, record: Record, start: int) -> Any:
        """The hash to update with data from `start` on; None if there is none to continue."""
        hashed, digest = self._hashes.pop(record.id, (0, None))
        if not record.sha256 or hashed != start:
            return None
        return digest or hashlib.sha256()

    def keep_hash(self, record: Record, digest: Any, size: int) -> None:
        """Keep a running hash of `size` bytes."""
        self._hashes[record.id] = (size, digest)

    def finish(
        self, record: Record, opened: parts.OpenedPart, writer: Writer, on_conflict: str
    ) -> None:
        """Let the complete part become the file; raises Refused."""
        dentry, part, file = opened
        self._verify(record, part, file, writer)
        name = parts.final_name(dentry, on_conflict, record.inode)
        record.final = str(sibling(record, dentry, name))
        self.records.save(record)  # recognized afterwards even if this process is killed
        target = Dentry(dentry.location, dentry.folder, name)
        parts.put(target, part, file, whole.completion(self.records, record, on_conflict))
        self.note_done(record)

    def is_done(self, record: Record) -> bool:
        """Whether an upload is complete, also if a process was killed right after that."""
        if record.done:
            return True
        if not record.final or parts.status(self.roots, record) is not None:
            return False
        try:
            with self.roots.resolve(parse(record.final), follow=False) as dentry:
                status = dentry.status()
        except Refused:
            return False
        is_it = status.st_ino in (record.inode, record.kept)
        if not is_it or status.st_size != record.length:
            return False
        self.note_done(record)
        return True

    def note_done(self, record: Record) -> None:
        """Record that an upload is complete."""
        record.done = time.time()
        with contextlib.suppress(OSError):  # is_done() recognizes the file by its inode, too
            self.records.save(record)

    def _verify(self, record: Record, part: Dentry, file: int, writer: Writer) -> None:
        """Compare the SHA-256 if the client sent one; raises Refused."""
        if not record.sha256:
            return
        size = os.fstat(file).st_size
        digest = self.running_hash(record, size)
        if digest is None:
            digest = hashlib.sha256()
            for position in range(0, size, _READ):
                digest.update(os.pread(file, _READ, position))
                writer.advanced()
        if digest.hexdigest() != record.sha256:
            at.unlink(part.folder, part.name)
            self.records.remove(record.id)
            raise mismatch()

    # Removal

    def discard(self, record: Record) -> None:
        """Delete a record, and its part unless that has become the file; raises Refused."""
        if not record.done:
            parts.remove(self.roots, record)
        self._hashes.pop(record.id, None)
        self._whole.remove(record.id)
        self.records.remove(record.id)


def sibling(record: Record, dentry: Dentry, name: bytes) -> Location:
    """The location of a name in the target's folder."""
    location = parse(record.path)
    return location if name == dentry.name else location.parent.child(name)


def mismatch() -> Refused:
    """The refusal if a checksum differs (the status is defined by tus)."""
    return Refused(460, "checksum", "What arrived differs from what was sent. Send it again.")
