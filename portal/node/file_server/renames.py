"""Renames that never replace a file, which rename(2) of POSIX cannot do."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat

from portal.node.file_server import at

_NO_REPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def rename_new(from_folder: int, name: bytes, to_folder: int, new: bytes) -> None:
    """Rename; raises FileExistsError if the new name exists."""
    try:
        _renameat2(from_folder, name, to_folder, new, _NO_REPLACE)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _rename_new_without_flags(from_folder, name, to_folder, new)


def exchange(from_folder: int, name: bytes, to_folder: int, other: bytes) -> bool:
    """Exchange two names at once; False if the file system cannot. Raises OSError."""
    try:
        _renameat2(from_folder, name, to_folder, other, _EXCHANGE)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    return True


def _renameat2(from_folder: int, name: bytes, to_folder: int, new: bytes, flags: int) -> None:
    call = getattr(_libc, "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, "renameat2")
    if call(from_folder, name, to_folder, new, flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_libc = ctypes.CDLL(None, use_errno=True)


def _rename_new_without_flags(from_folder: int, name: bytes, to_folder: int, new: bytes) -> None:
    """Rename where renameat2(2) has no flags, as on NFS: first reserve the name by creating it.

    A folder is renamed over an empty new one; rename(2) fails if that is no longer empty.
    """
    if stat.S_ISDIR(at.status(from_folder, name).st_mode):
        at.make_folder(to_folder, new, 0o700)
        try:
            at.rename(from_folder, name, to_folder, new)
        except OSError:
            with contextlib.suppress(OSError):
                at.remove_folder(to_folder, new)
            raise
        return
    try:
        at.link(from_folder, name, to_folder, new)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_unless_exists(from_folder, name, to_folder, new)
    else:
        at.unlink(from_folder, name)


def _rename_unless_exists(from_folder: int, name: bytes, to_folder: int, new: bytes) -> None:
    """Check, then rename: the last resort, on file systems without hard links."""
    try:
        at.status(to_folder, new)
    except FileNotFoundError:
        at.rename(from_folder, name, to_folder, new)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def sync(folder: int) -> None:
    """Write everything of a folder's file system to disk; raises OSError."""
    opened = at.reopen(folder, os.O_RDONLY)  # not for an O_PATH descriptor
    try:
        if _libc.syncfs(opened):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(opened)
