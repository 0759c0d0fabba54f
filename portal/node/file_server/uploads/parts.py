"""The part of an upload: an incomplete file in its target's folder, or in that of its record."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.location import Location, alternatives, parse, shown
from portal.node.file_server.replacing import Completion, create_part, settle
from portal.node.file_server.roots import Dentry, Roots, kind_words, open_file
from portal.node.file_server.uploads.records import REFUSE, RENAME, REPLACE
from portal.node.file_server.uploads.writers import locked
from portal.node.file_server.writing import reserve, write_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from portal.node.file_server.uploads.records import Record
    from portal.node.file_server.uploads.writers import Writer

    OpenedPart = tuple[Dentry, Dentry, int]
    """The target, and its part with its descriptor."""


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
    if on_conflict == REPLACE:
        with at.opened(dentry.folder, dentry.name, at.PATH) as existing:
            if not at.may(existing, os.W_OK):
                raise refusal_of(OSError(errno.EACCES, ""))


def make(dentry: Dentry, record: Record) -> None:
    """Create the part, and reserve its space if the file system can; raises Refused.

    So a file that exceeds the quota is refused before it is sent.
    """
    length = record.length or 0
    space = at.space(dentry.folder)
    if space.f_blocks and length > space.f_bavail * space.f_frsize:
        raise refusal_of(OSError(errno.ENOSPC, ""))
    file = create_part(dentry, record.part, replace=record.on_conflict == REPLACE)
    try:
        record.inode = os.fstat(file).st_ino
        reserve(file, length)
    finally:
        os.close(file)


def resolve(roots: Roots, record: Record) -> contextlib.AbstractContextManager[Dentry]:
    """Resolve the target; raises Refused."""
    follow = record.on_conflict == REPLACE
    return roots.resolve(parse(record.path), follow=follow, to_change=True)


@contextlib.contextmanager
def part_of(record: Record, beside: int) -> Iterator[Dentry]:
    """Yield the part's name in its open folder; `beside`: the target's. Raises OSError."""
    location = parse(record.path)
    if not record.folder:
        yield Dentry(location, beside, record.part)
        return
    folder = at.open_trusted(record.folder)
    try:
        yield Dentry(location, folder, record.part)
    finally:
        os.close(folder)


@contextlib.contextmanager
def opened(roots: Roots, record: Record) -> Iterator[OpenedPart]:
    """Yield the target, and the part with its descriptor, locked against other processes.

    Raises Refused: 410 if the part does not exist, 423 if another process writes to it.
    """
    with contextlib.ExitStack() as stack:
        try:
            dentry = stack.enter_context(resolve(roots, record))
            part = stack.enter_context(part_of(record, dentry.folder))
            file = stack.enter_context(claimed(part, record))
        except FileNotFoundError:
            raise gone() from None
        except Refused as refused:
            raise (gone() if refused.status in (404, 409) else refused) from None
        yield dentry, part, file


@contextlib.contextmanager
def claimed(part: Dentry, record: Record) -> Iterator[int]:
    """Open a part, locked against other processes; raises OSError, Refused as `opened`."""
    file = open_file(part, os.O_RDWR)
    try:
        status = os.fstat(file)
        # In a shared folder, another user could have replaced the part.
        if status.st_ino != record.inode or status.st_uid != os.geteuid():
            raise gone()
        lock(file)
        yield file
    finally:
        os.close(file)


def lock(file: int) -> None:
    """Lock an open part against other processes; raises Refused (423)."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise locked() from None
    except OSError:
        pass  # no locks on this file system; there is one server for each user and host


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
        writer.advanced()
        if digest is not None:
            digest.update(piece)
    return position


def _limited(body: Iterable[bytes | memoryview], most: int) -> Iterable[bytes | memoryview]:
    for piece in body:
        most -= len(piece)
        if most < 0:
            raise Refused(413, "too_large", "This is more than the upload's announced length.")
        yield piece


def put(dentry: Dentry, part: Dentry, file: int, completion: Completion) -> None:
    """Let a complete part, open as `file`, become the target; raises as replacing.settle.

    Also completes an earlier attempt that was killed in between.
    """
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(dentry.status(), os.fstat(file)):
            at.unlink(part.folder, part.name)
            return
    settle(dentry, part, file, completion)


def final_name(dentry: Dentry, on_conflict: str, inode: int) -> bytes:
    """The final name of a complete file: “name (2).txt” if the name exists and RENAME."""
    if on_conflict != RENAME or not _is_taken(dentry.folder, dentry.name, inode):
        return dentry.name
    for name in alternatives(dentry.name, is_folder=False):
        if not _is_taken(dentry.folder, name, inode):
            return name
    return dentry.name


def _is_taken(folder: int, name: bytes, inode: int) -> bool:
    """Whether a name exists, other than for the part itself."""
    try:
        return at.status(folder, name).st_ino != inode
    except FileNotFoundError:
        return False


def status(roots: Roots, record: Record) -> os.stat_result | None:
    """The status of the part; None if it does not exist."""
    try:
        with resolve(roots, record) as dentry, part_of(record, dentry.folder) as part:
            return part.status()
    except Refused:
        return None


def remove(roots: Roots, record: Record) -> None:
    """Delete the part, which may be missing; raises Refused."""
    try:
        with resolve(roots, record) as dentry, part_of(record, dentry.folder) as part:
            at.unlink(part.folder, part.name)
    except Refused as refused:
        if refused.status not in (404, 409):
            raise
