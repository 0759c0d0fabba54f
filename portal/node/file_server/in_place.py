"""Files that are written in place, since another file in their place would not be the same.

Replacing changes a file's owner and cuts its hard links, and some folders and mounts do not permit
it. The complete new contents are in a part before the first byte is written, and a record leads to
it: after a crash they are written again (uploads/recovery.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time

from portal.node.file_server import at
from portal.node.file_server.access.subjects import user_name
from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.roots import Dentry, is_private
from portal.node.file_server.writing import reserve, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REPLACE, IN_PLACE, REFUSED = "replace", "in_place", "refused"
PIECE = 1024 * 1024
LOCK_SECONDS = 3.0
CRASH_SECONDS = 60.0
"""How long after a part the file may have been written by us, and a second more for each PIECE."""
_CAPABILITIES = "security.capability"


def reason(folder: int, file: int) -> str:
    """Why an open file of an open folder is written in place, in words; "" if it is replaced.

    Where another user may have linked any file, one with several names is always replaced.
    """
    status = os.fstat(file)
    if status.st_nlink > 1 and not (at.links_are_protected() or is_private(folder)):
        return ""
    if status.st_uid != os.geteuid():
        return f"it belongs to {user_name(status.st_uid)}"
    if status.st_nlink > 1:
        return f"it has {status.st_nlink} names (hard links)"
    if at.mount_of(file) != at.mount_of(folder):
        return "it is mounted on its own"
    if not at.may(folder, os.W_OK | os.X_OK):
        return "no file can be created in its folder"
    return ""


def describe(dentry: Dentry) -> dict[str, str] | None:
    """How a file is saved, and what cannot be kept; None for anything but a file. Raises OSError.

    `how` is "replace", "in_place" or "refused", `detail` a text for the user, often "".
    """
    with at.opened(dentry.folder, dentry.name, at.PATH) as file:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return None
        if not at.may(file, os.W_OK):
            return {"how": REFUSED, "detail": "You may read this file, but not change it."}
        why = reason(dentry.folder, file)
        words = []
        if why:
            words.append(
                f"It is written in place, since {why}: a program that reads it at that moment may "
                "see only a part of it."
            )
        elif status.st_nlink > 1:
            words.append("Its other names (hard links) keep the old contents.")
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID) or _has_capabilities(file):
            words.append("It loses its set-user-ID and set-group-ID bits and its capabilities.")
    return {"how": IN_PLACE if why else REPLACE, "detail": " ".join(words)}


def _has_capabilities(file: int) -> bool:
    try:
        return _CAPABILITIES in at.attributes(file)
    except OSError:
        return False


def overwrite(file: int, part: int, begin: Callable[[], None] = lambda: None) -> None:
    """Write a part's contents into a file; both are open, the file for writing.

    `begin` is called before the first byte is changed. Raises OSError before; afterwards Refused
    (507) if the file is incomplete. Raises Refused (423) if another program has locked the file.
    """
    size = os.fstat(part).st_size
    _lock(file)
    reserve(file, size)
    begin()
    try:
        _copy(part, file)
        os.ftruncate(file, size)
        os.fsync(file)
    except OSError as error:
        words = "Only a part of it was written. The rest is kept, and written within an hour."
        detail = f"{refusal_of(error).detail} {words}"
        raise Refused(507, "incomplete", detail) from error


def _copy(part: int, file: int) -> None:
    os.lseek(file, 0, os.SEEK_SET)
    position = 0
    while piece := os.pread(part, PIECE, position):
        write_all(file, piece)
        position += len(piece)


def _lock(file: int) -> None:
    """Lock an open file (flock) until it is closed, as far as the file system has locks."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                detail = "Another program has locked this file. Try again in a moment."
                raise Refused(423, "locked", detail) from None
            time.sleep(0.05)
        except OSError:
            return
        else:
            return


def resume(dentry: Dentry, inode: int, part: int) -> bool:
    """Overwrite a file again after a crash; False if it is another one by now, or was changed.

    Raises OSError or Refused as overwrite.
    """
    try:
        opened = at.open_at(dentry.folder, dentry.name, at.PATH)
    except FileNotFoundError:
        return False
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, opened)
        status, new = os.fstat(opened), os.fstat(part)
        latest = new.st_ctime + CRASH_SECONDS + new.st_size / PIECE
        if status.st_ino != inode or not stat.S_ISREG(status.st_mode) or status.st_mtime > latest:
            return False
        file = at.reopen(opened, os.O_WRONLY)
        stack.callback(os.close, file)
        overwrite(file, part)
    return True
