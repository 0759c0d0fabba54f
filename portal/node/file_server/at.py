"""System calls on one name in an open directory: this package's only way to users' files.

Other users can write in many of these folders, and exchange any name between two calls. So a name
is resolved once, without following links, and all further calls use the descriptor. `make check`
refuses system calls that take paths elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY
PATH = getattr(os, "O_PATH", 0o10000000)  # Python 3.9
_ALWAYS = os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2 = 437
"""The system call's number, the same on all architectures."""
_BENEATH_WITHOUT_LINKS = 0x08 | 0x04 | 0x02
"""RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS of openat2(2)."""
LINKS = "/proc/sys/fs/protected_hardlinks"
_HOW = struct.Struct("=QQQ")
_libc = ctypes.CDLL(None, use_errno=True)


def _openat2(folder: int, name: bytes, flags: int, mode: int) -> int:
    how = _HOW.pack(flags, mode if flags & os.O_CREAT else 0, _BENEATH_WITHOUT_LINKS)
    while (opened := _libc.syscall(_OPENAT2, folder, name, how, _HOW.size)) < 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), name)
    return int(opened)


def _has_openat2() -> bool:
    """Whether the kernel has openat2(2) (since 5.6), and no filter forbids it."""
    try:
        os.close(_openat2(-100, b".", PATH | _ALWAYS, 0))  # AT_FDCWD
    except OSError:
        return False
    return True


HAS_OPENAT2 = _has_openat2()


def open_at(folder: int, name: bytes, flags: int, mode: int = 0o666) -> int:
    """Open a name without following a link; raises OSError. With PATH, a link itself is opened."""
    if b"/" in name or b"\0" in name or name == b"..":
        raise ValueError("not a single name")
    if HAS_OPENAT2:
        return _openat2(folder, name, flags | _ALWAYS, mode)
    return os.open(name, flags | _ALWAYS, mode, dir_fd=folder)


@contextlib.contextmanager
def opened(folder: int, name: bytes, flags: int) -> Iterator[int]:
    """Open a name as open_at does, and close it afterwards."""
    descriptor = open_at(folder, name, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_parent(folder: int, flags: int = PATH) -> int:
    """Open the directory above; raises OSError."""
    return os.open(b"..", flags | os.O_DIRECTORY | _ALWAYS, dir_fd=folder)


def open_trusted(path: str | bytes, folder: int | None = None) -> int:
    """Open (PATH) a directory by a path whose links are trusted; raises OSError.

    A path of the site's settings, or the user's own link where no other user can write.
    """
    return os.open(path, PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)


def make_trusted(path: str) -> None:
    """Create a directory of the site's settings, and those above it; raises OSError."""
    os.makedirs(path, exist_ok=True)


def status_of_trusted(path: str) -> os.stat_result:
    """The status of a path of the site's settings; raises OSError."""
    return os.stat(path)


def create(folder: int, name: bytes, mode: int, flags: int = os.O_WRONLY) -> int:
    """Create a regular file exclusively; raises OSError. The umask applies."""
    return open_at(folder, name, flags | os.O_CREAT | os.O_EXCL, mode)


def make_folder(folder: int, name: bytes, mode: int = 0o777) -> None:
    """mkdir(2); raises OSError."""
    os.mkdir(name, mode, dir_fd=folder)


def symlink(target: bytes, folder: int, name: bytes) -> None:
    """symlink(2); raises OSError."""
    os.symlink(target, name, dir_fd=folder)


def link(from_folder: int, name: bytes, to_folder: int, new: bytes) -> None:
    """link(2), without following a symbolic link; raises OSError."""
    os.link(name, new, src_dir_fd=from_folder, dst_dir_fd=to_folder, follow_symlinks=False)


def rename(from_folder: int, name: bytes, to_folder: int, new: bytes) -> None:
    """rename(2); raises OSError."""
    os.rename(name, new, src_dir_fd=from_folder, dst_dir_fd=to_folder)


def unlink(folder: int, name: bytes) -> None:
    """unlink(2); raises OSError."""
    os.unlink(name, dir_fd=folder)


def remove_folder(folder: int, name: bytes) -> None:
    """rmdir(2); raises OSError."""
    os.rmdir(name, dir_fd=folder)


def status(folder: int, name: bytes) -> os.stat_result:
    """lstat(2), only to show or compare; raises OSError."""
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def leads_to(folder: int, name: bytes) -> os.stat_result:
    """stat(2), which follows links to anywhere; only to show. Raises OSError."""
    return os.stat(name, dir_fd=folder)


def read_link(folder: int, name: bytes) -> bytes:
    """A link's target; raises OSError."""
    return os.readlink(name, dir_fd=folder)


def attribute_of(folder: int, name: bytes, attribute: str) -> bytes:
    """An extended attribute of a name that is no link, only to show; raises OSError."""
    if b"/" in name or b"\0" in name or name == b"..":
        raise ValueError("not a single name")
    path = os.fsencode(descriptor_path(folder)) + b"/" + name
    return os.getxattr(path, attribute, follow_symlinks=False)


def names(folder: int) -> list[bytes]:
    """The names in a directory; raises OSError."""
    return [os.fsencode(name) for name in os.listdir(folder)]


def scan(folder: int) -> Iterator[tuple[bytes, bool]]:
    """Names in a directory, and whether they are directories; raises OSError."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)


# Open files; a descriptor may be PATH unless the function says otherwise


def descriptor_path(descriptor: int) -> str:
    """A path of an open file, for system calls that take only paths."""
    return f"/proc/self/fd/{descriptor}"


def reopen(descriptor: int, flags: int) -> int:
    """Open an open file again with other flags; raises OSError."""
    return os.open(descriptor_path(descriptor), flags | os.O_CLOEXEC)


def current_path(descriptor: int) -> str:
    """The current path of a directory; raises OSError."""
    return os.readlink(descriptor_path(descriptor))


def mount_of(descriptor: int) -> bytes:
    """The mount that an open file is on; raises OSError."""
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
        return next((line for line in file if line.startswith(b"mnt_id:")), b"")


def links_are_protected() -> bool:
    """Whether the kernel refuses hard links to files that the user may not write.

    Otherwise another user could link any file of the user's into a folder that both can write.
    """
    try:
        with open(LINKS) as file:
            return file.read().strip() == "1"
    except OSError:
        return False


def may(descriptor: int, mode: int) -> bool:
    """access(2)."""
    return os.access(descriptor_path(descriptor), mode)


def space(descriptor: int) -> os.statvfs_result:
    """statvfs(2); raises OSError."""
    return os.statvfs(descriptor_path(descriptor))


def change_mode(descriptor: int, mode: int) -> None:
    """chmod(2); raises OSError."""
    os.chmod(descriptor_path(descriptor), mode)


def change_group(descriptor: int, group: int) -> None:
    """chgrp; raises OSError."""
    os.chown(descriptor_path(descriptor), -1, group)


def set_times(descriptor: int, accessed: int, modified: int) -> None:
    """Set times in nanoseconds, also of a link; raises OSError."""
    os.utime(descriptor_path(descriptor), ns=(accessed, modified))


def attribute(descriptor: int, name: str) -> bytes:
    """An extended attribute; raises OSError."""
    return os.getxattr(descriptor_path(descriptor), name)


def attributes(descriptor: int) -> list[str]:
    """The names of all extended attributes; raises OSError."""
    return os.listxattr(descriptor_path(descriptor))


def set_attribute(descriptor: int, name: str, value: bytes) -> None:
    """Set an extended attribute; raises OSError."""
    os.setxattr(descriptor_path(descriptor), name, value)


def remove_attribute(descriptor: int, name: str) -> None:
    """Remove an extended attribute; raises OSError."""
    os.removexattr(descriptor_path(descriptor), name)
