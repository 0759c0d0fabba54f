"""Complete parts take the place of files: they are renamed, or written into the file (in_place.py).

Other users may write in the folder and exchange the part at any moment. So all changes use the
part's descriptor, and its name is used once, for the rename.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections import deque
from dataclasses import dataclass

from portal.node.file_server import at, in_place
from portal.node.file_server.errors import Refused
from portal.node.file_server.renames import rename_new
from portal.node.file_server.roots import Dentry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[os.stat_result | None], None]

ACLS = ("system.posix_acl_access", "system.nfs4_acl")
_SECURITY = "security.selinux"
"""The attribute that a file system gives a new file by its folder, and users may have changed."""
PERMISSIONS = 0o777
"""Without set-user-ID, set-group-ID and sticky, which are never set here."""


def accept(_existing: os.stat_result | None) -> None:
    """Accept any file that is replaced."""


@dataclass(frozen=True)
class Completion:
    """How a complete part takes the place of a file."""

    replace: bool
    begin: Callable[[int], None]
    """Called with the file's inode before its first byte is changed in place: records that."""
    check: Check = accept
    """Called with the file's status right before it is replaced; raises Refused."""
    modified: float | None = None
    """Time to set on the file, in seconds since the epoch."""


def create_part(dentry: Dentry, part: bytes, *, replace: bool) -> int:
    """Create the part of a file, for reading and writing; raises OSError.

    It is not more readable than the existing file that it is to `replace`.
    """
    mode = 0o666
    if replace:
        with contextlib.suppress(OSError), _opened(dentry) as existing:
            mode &= _readable(dentry.folder, existing)
    return at.create(dentry.folder, part, mode, os.O_RDWR)


def _readable(folder: int, existing: int) -> int:
    """The most permissions of the part of an existing file."""
    status, above = os.fstat(existing), os.fstat(folder)
    if not _is_own_file(status):
        return 0o600 if in_place.reason(folder, existing) else PERMISSIONS
    group = above.st_gid if above.st_mode & stat.S_ISGID else os.getegid()
    return (status.st_mode | 0o600) & (PERMISSIONS if group == status.st_gid else ~0o070)


def settle(dentry: Dentry, part: Dentry, file: int, completion: Completion) -> None:
    """Let a complete part, open as `file`, take the place of a file, or become a new one.

    Raises Refused: 409 `exists` if there is such a file and it is not to be replaced, 409 `changed`
    if another user has exchanged the part or the file.
    """
    if completion.modified is not None:
        set_modified(file, completion.modified)
    _written.add(os.fstat(file))
    if not completion.replace:
        completion.check(None)
        try:
            rename_new(part.folder, part.name, dentry.folder, dentry.name)
        except FileExistsError:
            raise Refused(409, "exists", "A file of this name exists already.") from None
    elif _write_in_place(dentry, part, file, completion):
        return
    else:
        at.rename(part.folder, part.name, dentry.folder, dentry.name)
    _check_settled(dentry)


def _opened(dentry: Dentry) -> contextlib.AbstractContextManager[int]:
    """Open what a dentry names (O_PATH); raises OSError."""
    return at.opened(dentry.folder, dentry.name, at.PATH)


def _write_in_place(dentry: Dentry, part: Dentry, file: int, completion: Completion) -> bool:
    """Write the part into the existing file; False if it is to be renamed instead."""
    with contextlib.ExitStack() as stack:
        try:
            existing = stack.enter_context(_opened(dentry))
        except FileNotFoundError:
            completion.check(None)
            return False
        status = os.fstat(existing)
        completion.check(status)
        beside = part.folder == dentry.folder
        if not stat.S_ISREG(status.st_mode) or (beside and _is_replaceable(dentry, existing, file)):
            return False
        opened = at.reopen(existing, os.O_WRONLY)
        stack.callback(os.close, opened)
        in_place.overwrite(opened, file, lambda: completion.begin(status.st_ino))
        if completion.modified is not None:
            with contextlib.suppress(PermissionError):  # only its owner may
                set_modified(opened, completion.modified)
        at.unlink(part.folder, part.name)
        if not os.path.samestat(dentry.status(), status):
            raise _changed()
    return True


def _is_replaceable(dentry: Dentry, existing: int, file: int) -> bool:
    """Whether the part can become all that the file is; gives it the file's permissions.

    A file of another user's only passes on that it is executable; the folder decides about access.
    """
    if in_place.reason(dentry.folder, existing):
        return False
    status = os.fstat(existing)
    if _is_own_file(status):
        return _keep_own(existing, status, file)
    mode = os.fstat(file).st_mode & PERMISSIONS
    if status.st_mode & 0o100:
        os.fchmod(file, mode | (mode & 0o444) >> 2)
    return True


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
    raise _changed()


def _changed() -> Refused:
    detail = "Somebody else changed this file while it was saved. Look at it, then save it again."
    return Refused(409, "changed", detail)


def _is_own_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _keep_own(existing: int, status: os.stat_result, file: int) -> bool:
    """Give the part group, permissions, access control list and attributes of the user's file.

    Returns whether it has all of them now.
    """
    with contextlib.suppress(OSError):
        if status.st_gid != os.fstat(file).st_gid:
            os.fchown(file, -1, status.st_gid)
        os.fchmod(file, status.st_mode & PERMISSIONS)
    keep_attributes(existing, file, acls=True)
    return _kept(existing) == _kept(file)


def _kept(file: int) -> tuple[int, int, dict[str, bytes]]:
    """Group, permissions and attributes that a file keeps when it is saved."""
    status, attributes = os.fstat(file), {}
    with contextlib.suppress(OSError):
        for name in at.attributes(file):
            if name.startswith("user.") or name in (*ACLS, _SECURITY):
                attributes[name] = at.attribute(file, name)
    return status.st_gid, status.st_mode & PERMISSIONS, attributes


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
        if name.startswith("user.") or (acls and name in (*ACLS, _SECURITY)):
            with contextlib.suppress(OSError):
                at.set_attribute(target, name, at.attribute(source, name))


def set_modified(file: int, seconds: float) -> None:
    """Set the time of modification of an open file; raises OSError."""
    nanoseconds = int(seconds * 1e9)
    at.set_times(file, nanoseconds, nanoseconds)
