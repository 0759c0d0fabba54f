"""Files that are complete before they get their name: created beside it, then renamed.

Others may write in the folder and exchange the unfinished part at any moment. So what happens to a
part happens to its descriptor, and its name is used once, for the rename.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections import deque

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.renames import rename_new
from portal.node.file_server.roots import Place

ACLS = ("system.posix_acl_access", "system.nfs4_acl")
PERMISSIONS = 0o777
"""Without set-user-ID, set-group-ID and sticky, which no file gets from here."""


def create_part(place: Place, part: bytes, flags: int = os.O_WRONLY) -> int:
    """Create the part of a file; raises OSError.

    Nobody may read more of it than of the user's own file that it replaces.
    """
    mode = 0o666
    with contextlib.suppress(OSError):
        replaced = at.status(place.folder, place.name)
        if _is_own_file(replaced):
            mode &= replaced.st_mode | 0o600
    return at.create(place.folder, part, mode, flags)


def settle(place: Place, part: bytes, file: int, *, replace: bool) -> None:
    """Give a complete part, open as `file`, its final name.

    Raises Refused: 409 `exists` if there is such a file and `replace` is False, 409 `changed` if
    another user has exchanged the part or the file.
    """
    _written.add(os.fstat(file))
    if replace:
        _keep_permissions(place, file)
        at.rename(place.folder, part, place.folder, place.name)
    else:
        try:
            rename_new(place.folder, part, place.folder, place.name)
        except FileExistsError:
            raise Refused(409, "exists", "A file of this name exists already.") from None
    _check_settled(place)


class _Written:
    """The files that this process has written last, by device and inode."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: deque[tuple[int, int]] = deque(maxlen=1000)

    def add(self, status: os.stat_result) -> None:
        """Note a complete file, before it gets its name."""
        with self._lock:
            self._files.append((status.st_dev, status.st_ino))

    def __contains__(self, status: os.stat_result) -> bool:
        with self._lock:
            return (status.st_dev, status.st_ino) in self._files


_written = _Written()


def _check_settled(place: Place) -> None:
    """The rename has used a name: what has the final name now must be what was written, or what
    another request has written, which came after this one.
    """
    with contextlib.suppress(FileNotFoundError):
        if at.status(place.folder, place.name) in _written:
            return
    detail = "Somebody else changed this file while it was saved. Look at it, then save it again."
    raise Refused(409, "changed", detail)


def _is_own_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _keep_permissions(place: Place, file: int) -> None:
    """Give a part what the file has that it replaces.

    The user's own keeps its group, permissions, access control list and attributes. Somebody else's
    was open to whom its owner liked: it only remains a program, and all else is the folder's.
    """
    with (
        contextlib.suppress(OSError),
        at.opened(place.folder, place.name, at.PATH) as opened,
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
        except OSError:  # what the one group could do is not for the other
            mode &= ~0o070
    keep_attributes(opened, file, acls=True)
    os.fchmod(file, mode)


def keep_attributes(source: int, target: int, *, acls: bool) -> None:
    """Give a file or folder the extended attributes of another one, as far as it can have them.

    `acls`: its access control list, too, or none if that has none. Never capabilities, nor what
    belongs to the system's security.
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
