"""What a folder gives to everything that arrives in it: group, access control list, permissions.

The kernel, or an NFSv4 server, gives it to new files. This is for what was made elsewhere: copies,
which begin with the permissions of their source, and moved files. It is one rule for all of them:

- In a folder with a list for new files (POSIX default, NFSv4 inheritable), or with set-group-ID for
  another group than the user's own, they get what an upload gets, and stay executable. Everybody
  else (“others”) gets no more than from the original.
- In any other folder they keep their permissions, below the umask.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, replace

from portal.node.file_server import at
from portal.node.file_server.access import nfs4_acl, posix_acl
from portal.node.file_server.access.nfs4_acl import (
    DIRECTORY_INHERIT,
    FILE_INHERIT,
    INHERIT_ONLY,
    NO_PROPAGATE,
    Ace,
)
from portal.node.file_server.access.posix_acl import Acl
from portal.node.file_server.access.walk import OpenFile

PERMISSIONS = 0o777
"""Without set-user-ID, set-group-ID and sticky, which nothing takes along."""
_UMASK = os.umask(0o077)
os.umask(_UMASK)
_INHERITED = FILE_INHERIT | DIRECTORY_INHERIT


@dataclass(frozen=True)
class Inheritance:
    """What an open folder gives; equal ones give the same."""

    group: int
    """The group of new files."""
    default: Acl | None
    entries: tuple[Ace, ...] = ()
    """The inheritable entries of an NFSv4 list."""

    @property
    def is_common(self) -> bool:
        """Whether the folder itself says who may use what is in it."""
        named = any(not ace.who.endswith("@") for ace in self.entries)
        return self.default is not None or named or self.group != os.getegid()

    def mode(self, file: OpenFile) -> int:
        """The mode with which a copy of a file begins, or a moved file, below `permitted`."""
        mode = file.status.st_mode & PERMISSIONS
        if not self.is_common:
            mode = _effective(file, mode)
        return self.mode_of(mode, is_folder=file.is_folder)

    def mode_of(self, mode: int, *, is_folder: bool) -> int:
        """The same for these permissions of a file that comes without a list."""
        if not self.is_common:
            return mode
        executable = is_folder or mode & 0o100
        return 0o660 | (0o110 if executable else 0) | (mode & 0o007)

    @property
    def permitted(self) -> int:
        """The most permissions of new files."""
        if self.default is None:
            return PERMISSIONS & ~_UMASK
        group = self.default.group if self.default.mask is None else self.default.mask
        return self.default.owner << 6 | group << 3 | self.default.other

    def give(self, file: OpenFile) -> None:
        """Give a file or folder of the user's, made elsewhere, all of it; raises OSError."""
        mode = self.mode(file) & self.permitted
        if file.status.st_gid != self.group:
            with contextlib.suppress(PermissionError):  # a group that the user is not in
                at.change_group(file.descriptor, self.group)
        if self.default is None:
            _remove_lists(file)
        else:
            posix_acl.write(file.path, _limited(self.default, mode))
            if file.is_folder:
                posix_acl.write(file.path, self.default, posix_acl.DEFAULT)
        special = stat.S_ISGID if file.is_folder and self.group != os.getegid() else 0
        at.change_mode(file.descriptor, mode | special)
        if self.default is None:
            with contextlib.suppress(OSError):  # POSIX lists
                self._write_entries(file)

    def give_entries(self, file: OpenFile) -> None:
        """Give the entries of an NFSv4 list, last: a change of the mode can change them."""
        if self.entries:
            self._write_entries(file)

    def _write_entries(self, file: OpenFile) -> None:
        own = [ace for ace in nfs4_acl.read(file.path) if ace.who.endswith("@")]
        executable = file.is_folder or bool(file.status.st_mode & stat.S_IXUSR)
        given = [
            inherited
            for ace in self.entries
            if not ace.who.endswith("@")
            for inherited in _inherited(ace, is_folder=file.is_folder, executable=executable)
        ]
        nfs4_acl.write(file.path, [*given, *own])


def inheritance_of(folder: int) -> Inheritance:
    """What an open folder gives; raises ValueError if its list is not understood."""
    status, path = os.fstat(folder), at.descriptor_path(folder)
    group = status.st_gid if status.st_mode & stat.S_ISGID else os.getegid()
    with contextlib.suppress(OSError):  # not supported
        return Inheritance(group, posix_acl.read(path, posix_acl.DEFAULT))
    entries: list[Ace] = []
    with contextlib.suppress(OSError):
        entries = nfs4_acl.read(path)
    return Inheritance(group, None, tuple(ace for ace in entries if ace.flags & _INHERITED))


def _effective(file: OpenFile, mode: int) -> int:
    """The permissions without a list: group bits are the mask's if there is one."""
    with contextlib.suppress(OSError, ValueError):
        acl = posix_acl.read(file.path)
        if acl is not None and acl.mask is not None:
            return mode & (0o707 | (acl.group & acl.mask) << 3)
    return mode


def _limited(default: Acl, mode: int) -> Acl:
    """The access list of a new file with this mode, as the kernel makes it (acl(5))."""
    owner, group, other = mode >> 6 & 7, mode >> 3 & 7, mode & 7
    if default.mask is not None:
        return replace(default, owner=owner, mask=default.mask & group, other=other)
    return replace(default, owner=owner, group=default.group & group, other=other)


def _remove_lists(file: OpenFile) -> None:
    for name in (posix_acl.ACCESS, posix_acl.DEFAULT):
        with contextlib.suppress(OSError):  # there is none
            at.remove_attribute(file.descriptor, name)


def _inherited(ace: Ace, *, is_folder: bool, executable: bool) -> list[Ace]:
    """An inheritable entry as a new file or folder gets it (RFC 7530, 6.2.1.4)."""
    if not is_folder:
        if not ace.flags & FILE_INHERIT:
            return []
        mask = ace.mask & ~nfs4_acl.DELETE_CHILD
        mask = mask if executable else mask & ~nfs4_acl.EXECUTE
        return [replace(ace, flags=ace.flags & nfs4_acl.GROUP, mask=mask)]
    passed_on = 0 if ace.flags & NO_PROPAGATE else ace.flags & _INHERITED
    if ace.flags & DIRECTORY_INHERIT:
        return [replace(ace, flags=ace.flags & nfs4_acl.GROUP | passed_on)]
    if not passed_on:
        return []
    return [replace(ace, flags=ace.flags & nfs4_acl.GROUP | passed_on | INHERIT_ONLY)]
