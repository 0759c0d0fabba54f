"""Files that arrive in one request: a part, which then takes the place of the file."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass

from portal.node.file_server import at
from portal.node.file_server.replacing import Completion, accept, create_part, settle
from portal.node.file_server.roots import Dentry, open_file
from portal.node.file_server.uploads import parts
from portal.node.file_server.uploads.records import REPLACE, SMALL, Record, Store
from portal.node.file_server.writing import write_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from portal.node.file_server.replacing import Check

_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Body:
    """The contents of a request, and what is checked before they replace a file."""

    pieces: Iterable[bytes | memoryview]
    length: int | None
    """None if it is not known before."""
    check: Check = accept
    """Called with the status of the file right before it is replaced."""


def save(store: Store, record: Record, dentry: Dentry, body: Body) -> None:
    """Write a file; raises Refused or OSError, and then leaves the file as it was.

    A large part, and one that is written into the file, is recorded: after a crash it is removed,
    or written again. With code `incomplete` the file is written again, too.
    """
    large = body.length is None or body.length > SMALL
    if large:
        with contextlib.suppress(OSError):  # it is written without a record, too
            store.save(record)
    try:
        with _created(store, record, dentry) as (part, file):
            try:
                for _ in write_pieces(file, body.pieces):
                    pass
                settle(
                    dentry, part, file, completion(store, record, record.on_conflict, body.check)
                )
            except BaseException:
                if not record.kept:
                    with contextlib.suppress(OSError):
                        at.unlink(part.folder, part.name)
                raise
        record.done = time.time()
    finally:
        if (large or record.folder or record.kept) and (record.done or not record.kept):
            store.remove(record.id)


def completion(store: Store, record: Record, on_conflict: str, check: Check = accept) -> Completion:
    """How a record's part takes the place of its file: recorded before that is changed in place."""

    def begin(inode: int) -> None:
        record.kept = inode
        try:
            store.save(record)
        except OSError:
            record.kept = 0
            raise

    return Completion(on_conflict == REPLACE, begin, check, record.modified)


@contextlib.contextmanager
def _created(store: Store, record: Record, dentry: Dentry) -> Iterator[tuple[Dentry, int]]:
    """Create the part, open and locked; raises OSError or Refused.

    It is beside the file, or with its record if nothing can be created there.
    """
    with contextlib.ExitStack() as stack:
        replace = record.on_conflict == REPLACE
        part = stack.enter_context(parts.part_of(record, dentry.folder))
        try:
            file = create_part(dentry, part.name, replace=replace)
        except OSError as error:
            if error.errno not in _FORBIDDEN or not replace or not _is_writable(dentry):
                raise
            record.folder = store.save(record)
            store.save(record)
            part = stack.enter_context(parts.part_of(record, dentry.folder))
            file = at.create(part.folder, part.name, 0o600, os.O_RDWR)
        stack.callback(os.close, file)
        parts.lock(file)
        record.inode = os.fstat(file).st_ino
        yield part, file


def _is_writable(dentry: Dentry) -> bool:
    try:
        os.close(open_file(dentry, os.O_WRONLY))
    except OSError:
        return False
    return True
