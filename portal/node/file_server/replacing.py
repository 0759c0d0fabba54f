"""Atomic replacement of files: a part is written beside the file, then renamed.

Other users may write in the folder and exchange the part at any moment. So all changes use the
part's descriptor, and its name is used once, for the rename.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import threading
from collections import deque

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import PART_PREFIX
from portal.node.file_server.renames import rename_new
from portal.node.file_server.roots import Dentry
from portal.node.file_server.writing import write_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ACLS = ("system.posix_acl_access", "system.nfs4_acl")
PERMISSIONS = 0o777
"""Without set-user-ID, set-group-ID and sticky, which are never set here."""


def new_part() -> bytes:
    """A name for an incomplete file."""
    return PART_PREFIX + secrets.token_hex(8).encode()


def write(
    dentry: Dentry,
    body: Iterable[bytes | memoryview],
    *,
    replace: bool,
    modified: float | None = None,
    part: bytes = b"",
    before: Callable[[], None] | None = None,
) -> None:
    """Write a file as a part, and rename it when it is complete.

    `before` is called right before the rename, and raises what prevents it. Raises Refused as
    replacing.settle.
    """
    part = part or new_part()
    file = create_part(dentry, part)
    try:
        for _ in write_pieces(file, body):
            pass
        if modified is not None:
            set_modified(file, modified)
        if before is not None:
            before()
        settle(dentry, part, file, replace=replace)
    except BaseException:
        with contextlib.suppress(OSError):
            at.unlink(dentry.folder, part)
        raise
    finally:
        os.close(file)


def create_part(dentry: Dentry, part: bytes, flags: int = os.O_WRONLY) -> int:
    """Create the part of a file; raises OSError.

    It is not more readable than the user's file that it replaces.
    """
    mode = 0o666
    with contextlib.suppress(OSError):
        replaced = at.status(dentry.folder, dentry.name)
        if _is_own_file(replaced):
            mode &= replaced.st_mode | 0o600
    return at.create(dentry.folder, part, mode, flags)


def settle(dentry: Dentry, part: bytes, file: int, *, replace: bool) -> None:
    """Rename a complete part, open as `file`, to its final name.

    Raises Refused: 409 `exists` if there is such a file and `replace` is False, 409 `changed` if
    another user has exchanged the part or the file.
    """
    _written.add(os.fstat(file))
    if replace:
        _keep_permissions(dentry, file)
        at.rename(dentry.folder, part, dentry.folder, dentry.name)
    else:
        try:
            rename_new(dentry.folder, part, dentry.folder, dentry.name)
        except FileExistsError:
            raise Refused(409, "exists", "A file of this name exists already.") from None
    _check_settled(dentry)


class _Written:
    """The files that this process wrote last, by device and inode."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: deque[tuple[int, int]] = deque(maxlen=1000)

    def add(self, status: os.stat_result) -> None:
        """Add a complete file, before it is renamed."""
        with self._lock:
            self._files.append((status.st_dev, status.st_ino))

    def __contains__(self, status: os.stat_result) -> bool:
        with self._lock:
            return (status.st_dev, status.st_ino) in self._files


_written = _Written()


def _check_settled(dentry: Dentry) -> None:
    """Check that the final name now leads to the part, or to that of a later request.

    The rename used a name, which another user may have exchanged.
    """
    with contextlib.suppress(FileNotFoundError):
        if at.status(dentry.folder, dentry.name) in _written:
            return
    detail = "Somebody else changed this file while it was saved. Look at it, then save it again."
    raise Refused(409, "changed", detail)


def _is_own_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _keep_permissions(dentry: Dentry, file: int) -> None:
    """Copy permissions from the file that is replaced to the part.

    A file of the user's passes on its group, permissions, access control list and attributes. One
    of another user only passes on that it is executable; the folder decides about access.
    """
    with (
        contextlib.suppress(OSError),
        at.opened(dentry.folder, dentry.name, at.PATH) as opened,
    ):
        replaced, mode = os.fstat(opened), os.fstat(file).st_mode & PERMISSIONS
        if _is_own_file(replaced):
            _keep_own(opened, replaced, file)
        elif stat.S_ISREG(replaced.st_mode) and replaced.st_mode & 0o100:
            os.fchmod(file, mode | (mode & 0o444) >> 2)


def _keep_own(opened: int, replaced: os.stat_result, file: int) -> None:
    mode = replaced.st_mode & PERMISSIONS
    if replaced.st_gid != os.fstat(file).st_gid:
        try:
            os.fchown(file, -1, replaced.st_gid)
        except OSError:  # the permissions were meant for another group
            mode &= ~0o070
    keep_attributes(opened, file, acls=True)
    os.fchmod(file, mode)


def keep_attributes(source: int, target: int, *, acls: bool) -> None:
    """Copy extended attributes, as far as the file system accepts them.

    `acls`: also the access control list, which is removed if the source has none. Capabilities and
    security attributes are never copied.
    """
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = at.attributes(source)
    if acls and ACLS[0] not in names:
        with contextlib.suppress(OSError):
            at.remove_attribute(target, ACLS[0])
    for name in names:
        if name.startswith("user.") or (acls and name in ACLS):
            with contextlib.suppress(OSError):
                at.set_attribute(target, name, at.attribute(source, name))


def set_modified(file: int, seconds: float) -> None:
    """Set the time of modification of an open file; raises OSError."""
    nanoseconds = int(seconds * 1e9)
    at.set_times(file, nanoseconds, nanoseconds)
