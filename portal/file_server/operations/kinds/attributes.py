"""Owner, permissions, access control lists, extended attributes and times of copies."""

from __future__ import annotations

import contextlib
import os
import stat

ACLS = ("system.posix_acl_access", "system.posix_acl_default", "system.nfs4_acl")
_NOT_OURS = ("security.", "trusted.")


def keep(source: int, target: int, status: os.stat_result) -> None:
    """Give an open file or folder what its source has, as far as the user may (`cp -a`)."""
    mode = stat.S_IMODE(status.st_mode)
    if not _keep_owner(target, status):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # they would act for somebody else
    os.fchmod(target, mode)
    _keep_extended(source, target)
    with contextlib.suppress(OSError):
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def keep_link(folder: int, name: bytes, status: os.stat_result) -> None:
    """Give a link the owner and times of its source."""
    with contextlib.suppress(OSError):
        os.chown(name, status.st_uid, status.st_gid, dir_fd=folder, follow_symlinks=False)
    with contextlib.suppress(OSError):
        times = (status.st_atime_ns, status.st_mtime_ns)
        os.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)


def _keep_owner(target: int, status: os.stat_result) -> bool:
    found = os.fstat(target)
    if (found.st_uid, found.st_gid) == (status.st_uid, status.st_gid):
        return True
    with contextlib.suppress(OSError):
        os.fchown(target, status.st_uid, status.st_gid)
        return True
    with contextlib.suppress(OSError):
        os.fchown(target, -1, status.st_gid)
    return False


def _keep_extended(source: int, target: int) -> None:
    """The file system may have none, or others: what cannot be kept is left out."""
    with contextlib.suppress(OSError):
        names = os.listxattr(source)
        for name in os.listxattr(target):
            if name in ACLS and name not in names:  # what the destination gives to new files
                with contextlib.suppress(OSError):
                    os.removexattr(target, name)
        for name in names:
            if not name.startswith(_NOT_OURS):
                with contextlib.suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))
