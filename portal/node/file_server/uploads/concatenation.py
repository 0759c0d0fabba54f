"""Joins partial uploads to a file (the extension Concatenation of tus)."""

from __future__ import annotations

import contextlib
import os
import time

from portal.node.file_server.copy_data import copy_data
from portal.node.file_server.errors import Refused
from portal.node.file_server.uploads import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from portal.node.file_server.uploads.records import Record
    from portal.node.file_server.uploads.stored import StoredUploads
    from portal.node.file_server.uploads.writers import Writer, Writers

MOST_PARTIALS = 1000
"""Partial uploads of a user that are not joined yet."""
FIELD = "Upload-Concat"


class Concatenation:
    """Final uploads, each of which joins partial ones."""

    def __init__(self, stored: StoredUploads, writers: Writers) -> None:
        self._stored, self._writers = stored, writers

    def check_count(self) -> None:
        """Raise Refused if there are too many partial uploads."""
        count = sum(record.is_partial and not record.done for record in self._stored.all())
        if count >= MOST_PARTIALS:
            detail = f"There are {count:,} partial uploads already. Join or delete them first."
            raise Refused(409, "too_many", detail, FIELD)

    def join(
        self,
        record: Record,
        connection: socket.socket,
        working: Callable[[], object] | None = None,
    ) -> Record:
        """Join partial uploads under the final name, then delete their data.

        If the same request was carried out before, its upload is returned: the client did not
        receive the response. Until the file is complete the partial uploads remain, and this can
        be repeated. Raises Refused.
        """
        joined = self._earlier(record, connection)
        if joined is None:
            record.length = sum(self._length(id) for id in record.partial_ids)
            with self._writers.exclusive(record.id, connection, working=working) as writer:
                self._create(record, writer)
            joined = record
        self._delete_partials(joined)
        return joined

    def _earlier(self, record: Record, connection: socket.socket) -> Record | None:
        """The completed upload of the same request; removes one whose process was killed."""
        request = record.concat, record.metadata
        for earlier in self._stored.all():
            if (earlier.concat, earlier.metadata) != request:
                continue
            with self._writers.exclusive(earlier.id, connection):
                current = self._current(earlier.id)
                if current and self._stored.is_done(current):
                    return current
                if current and not current.kept:
                    self._stored.discard(current)
        return None

    def _current(self, id: str) -> Record | None:
        try:
            return self._stored.get(id)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def _length(self, id: str) -> int:
        """The length of a complete partial upload; raises Refused."""
        try:
            partial = self._stored.get(id)
        except Refused as refused:
            raise Refused(refused.status, refused.code, refused.detail, FIELD) from None
        if not partial.is_partial:
            raise Refused(400, "value", f"{id} is not a partial upload.", FIELD)
        status = None if partial.done else parts.status(self._stored.roots, partial)
        if status is None:
            detail = f"The partial upload {id} was joined or deleted before."
            raise Refused(410, "gone", detail, FIELD)
        if status.st_size != partial.length:
            detail = f"The partial upload {id} is not complete."
            raise Refused(409, "unfinished", detail, FIELD)
        return partial.length

    def _create(self, record: Record, writer: Writer) -> None:
        self._stored.create(record)
        try:
            with parts.opened(self._stored.roots, record) as opened:
                self._copy(record, opened[-1], writer)
                self._stored.finish(record, opened, writer, record.on_conflict)
        except BaseException:
            if not record.kept:  # otherwise the file has been changed: it is written again later
                self._stored.discard(record)
            raise

    def _copy(self, record: Record, file: int, writer: Writer) -> None:
        position = 0
        for id in record.partial_ids:
            with self._writers.exclusive(id):
                partial = self._stored.get(id)
                with parts.opened(self._stored.roots, partial) as (*_, source):
                    position += copy_data(source, file, lambda _: writer.advanced(), position)
        if position != record.length:
            raise Refused(409, "changed", "A partial upload changed while it was joined.", FIELD)
        os.fdatasync(file)

    def _delete_partials(self, record: Record) -> None:
        """Delete the data; the records remain for clients that repeat the request."""
        for id in dict.fromkeys(record.partial_ids):
            with contextlib.suppress(Refused, OSError), self._writers.exclusive(id):
                partial = self._stored.get(id)
                if partial.done:
                    continue
                # The part first: nothing would remove that of an upload that is done.
                parts.remove(self._stored.roots, partial)
                partial.done = time.time()
                self._stored.records.save(partial)
