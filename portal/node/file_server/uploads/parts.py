"""The part of an upload, an incomplete file in its target's folder."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import stat
import time

from portal.node.file_server import at
from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.location import LONGEST_NAME, Location, parse, shown
from portal.node.file_server.replacing import create_part, settle
from portal.node.file_server.roots import Dentry, Roots, kind_words, open_file
from portal.node.file_server.uploads.records import REFUSE, RENAME, REPLACE
from portal.node.file_server.uploads.writers import locked
from portal.node.file_server.writing import write_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from portal.node.file_server.uploads.records import Record
    from portal.node.file_server.uploads.writers import Writer

_KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE"""
_NUMBERED = re.compile(rb"(.*) \((\d{1,9})\)", re.DOTALL)


def gone() -> Refused:
    """The refusal if the part no longer exists."""
    return Refused(
        410,
        "gone",
        "What had arrived of this upload is no longer there: its folder was moved or deleted. "
        "Upload the file again.",
    )


def make_folders(roots: Roots, location: Location) -> None:
    """Create the missing folders above a location; raises Refused."""
    for depth in range(len(roots.area(location).names) + 1, len(location.names)):
        folder = Location(location.root, location.names[:depth])
        with roots.resolve(folder, to_change=True) as dentry:
            with contextlib.suppress(FileExistsError):
                at.make_folder(dentry.folder, dentry.name)
            if not stat.S_ISDIR(dentry.status().st_mode):
                raise Refused(409, "not_folder", f"“{shown(folder.name)}” is not a folder.", "path")


def check_target(dentry: Dentry, on_conflict: str) -> None:
    """Raise Refused if the name exists and `on_conflict` does not permit that."""
    if dentry.name == b".":
        raise Refused(409, "folder", "This is a folder.", "path")
    try:
        mode = dentry.status().st_mode
    except FileNotFoundError:
        return
    if on_conflict == REFUSE:
        raise Refused(409, "exists", f"“{shown(dentry.name)}” exists already.", "path")
    if on_conflict == REPLACE and not stat.S_ISREG(mode):
        words = "a folder" if stat.S_ISDIR(mode) else kind_words(mode)
        detail = f"“{shown(dentry.name)}” is {words}, which a file cannot replace."
        raise Refused(409, "special", detail, "path")


def make(dentry: Dentry, record: Record) -> None:
    """Create the part, and reserve its space if the file system can; raises Refused.

    So a file that exceeds the quota is refused before it is sent.
    """
    length = record.length or 0
    space = at.space(dentry.folder)
    if space.f_blocks and length > space.f_bavail * space.f_frsize:
        raise refusal_of(OSError(errno.ENOSPC, ""))
    file = create_part(dentry, record.part, os.O_RDWR)
    try:
        record.inode = os.fstat(file).st_ino
        reserve(file, length)
    finally:
        os.close(file)


def reserve(file: int, length: int) -> None:
    """Reserve space without changing the size; raises OSError if there is not enough."""
    fallocate: Any = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None or not length:
        return
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if fallocate(file, _KEEP_SIZE, 0, length) != 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(number, os.strerror(number))


def _resolve(roots: Roots, record: Record) -> contextlib.AbstractContextManager[Dentry]:
    follow = record.on_conflict == REPLACE
    return roots.resolve(parse(record.path), follow=follow, to_change=True)


@contextlib.contextmanager
def opened(roots: Roots, record: Record) -> Iterator[tuple[Dentry, int]]:
    """Yield the target and the part, open and locked against other processes.

    Raises Refused: 410 if the part does not exist, 423 if another process writes to it.
    """
    with contextlib.ExitStack() as stack:
        dentry, file = _open(roots, record, stack)
        stack.callback(os.close, file)
        status = os.fstat(file)
        # In a shared folder, another user could have replaced the part.
        if status.st_ino != record.inode or status.st_uid != os.geteuid():
            raise gone()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise locked() from None
        except OSError:
            pass  # no locks on this file system; there is one server for each user and host
        yield dentry, file


def _open(roots: Roots, record: Record, stack: contextlib.ExitStack) -> tuple[Dentry, int]:
    try:
        dentry = stack.enter_context(_resolve(roots, record))
        return dentry, open_file(Dentry(dentry.location, dentry.folder, record.part), os.O_RDWR)
    except FileNotFoundError:
        raise gone() from None
    except Refused as refused:
        raise (gone() if refused.status in (404, 409) else refused) from None


def receive(
    file: int,
    start: int,
    length: int | None,
    body: Iterable[bytes | memoryview],
    writer: Writer,
    digest: Any = None,
) -> int:
    """Append a body from `start` on; returns the new size. `digest` is updated with it.

    Raises Refused (413) if it is longer than the upload. Data before an error are kept.
    """
    position = start
    limited = body if length is None else _limited(body, length - start)
    for piece in write_pieces(file, limited, start):
        position += len(piece)
        writer.last = time.monotonic()
        if digest is not None:
            digest.update(piece)
    return position


def _limited(body: Iterable[bytes | memoryview], most: int) -> Iterable[bytes | memoryview]:
    for piece in body:
        most -= len(piece)
        if most < 0:
            raise Refused(413, "too_large", "This is more than the upload's announced length.")
        yield piece


def put(dentry: Dentry, part: bytes, name: bytes, file: int, *, replace: bool) -> None:
    """Rename a complete part, open as `file`, to its final name; raises as replacing.settle.

    Also completes an earlier attempt that was killed in between.
    """
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(at.status(dentry.folder, name), os.fstat(file)):
            at.unlink(dentry.folder, part)
            return
    settle(Dentry(dentry.location, dentry.folder, name), part, file, replace=replace)


def final_name(dentry: Dentry, on_conflict: str, inode: int) -> bytes:
    """The final name of a complete file: “name (2).txt” if the name exists and RENAME."""
    name = dentry.name
    while on_conflict == RENAME:
        try:
            existing = at.status(dentry.folder, name)
        except FileNotFoundError:
            break
        if existing.st_ino == inode:
            break
        name = next_name(name)
    return name


def next_name(name: bytes) -> bytes:
    """The next name to try: “a.txt”, “a (2).txt”, “a (3).txt”; never longer than permitted."""
    stem, dot, suffix = name.rpartition(b".")
    if not stem or len(suffix) > 16:
        stem, dot, suffix = name, b"", b""
    numbered = _NUMBERED.fullmatch(stem)
    number = int(numbered[2]) + 1 if numbered else 2
    end = b" (%d)" % number + dot + suffix
    return (numbered[1] if numbered else stem)[: LONGEST_NAME - len(end)] + end


def status(roots: Roots, record: Record) -> os.stat_result | None:
    """The status of the part; None if it does not exist."""
    try:
        with _resolve(roots, record) as dentry:
            return at.status(dentry.folder, record.part)
    except Refused:
        return None


def remove(roots: Roots, record: Record) -> None:
    """Delete the part, which may be missing; raises Refused."""
    try:
        with _resolve(roots, record) as dentry:
            at.unlink(dentry.folder, record.part)
    except Refused as refused:
        if refused.status not in (404, 409):
            raise
