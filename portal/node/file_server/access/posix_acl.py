"""POSIX access control lists, read and written as Linux keeps them (acl(5), xattr(7)).

Extended attributes can be set through a descriptor, so no other user can exchange the file
meanwhile; setfacl takes paths only.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from dataclasses import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
READ, WRITE, EXECUTE = 4, 2, 1
_VERSION = 2
_NOBODY = 0xFFFFFFFF
_HEADER, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)


@dataclass(frozen=True)
class Acl:
    """Permissions (4 read, 2 write, 1 execute) of owner, group, others, named users and groups."""

    owner: int
    group: int
    other: int
    named: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """By tag (USER or GROUP) and numeric id."""
    mask: int | None = None
    """The most that the group and named users and groups get."""


def of_mode(mode: int) -> Acl:
    """The list of a file that has only permissions."""
    return Acl(mode >> 6 & 7, mode >> 3 & 7, mode & 7)


def parse(data: bytes) -> Acl:
    """Read the attribute's value; raises ValueError."""
    if len(data) % _ENTRY.size != _HEADER.size or _HEADER.unpack_from(data)[0] != _VERSION:
        raise ValueError("not an access control list of this version")
    single: dict[int, int] = {}
    entries: dict[tuple[int, int], int] = {}
    for tag, permissions, number in _ENTRY.iter_unpack(data[_HEADER.size :]):
        if tag in (USER, GROUP):
            entries[tag, number] = permissions
        else:
            single[tag] = permissions
    try:
        return Acl(single[USER_OBJ], single[GROUP_OBJ], single[OTHER], entries, single.get(MASK))
    except KeyError:
        raise ValueError("an access control list without its three first entries") from None


def encode(acl: Acl) -> bytes:
    """The attribute's value, its entries in the kernel's order."""
    users = sorted(entry for entry in acl.named.items() if entry[0][0] == USER)
    groups = sorted(entry for entry in acl.named.items() if entry[0][0] == GROUP)
    rows = [
        (USER_OBJ, acl.owner, _NOBODY),
        *((tag, permissions, number) for (tag, number), permissions in users),
        (GROUP_OBJ, acl.group, _NOBODY),
        *((tag, permissions, number) for (tag, number), permissions in groups),
    ]
    if acl.mask is not None:
        rows.append((MASK, acl.mask, _NOBODY))
    rows.append((OTHER, acl.other, _NOBODY))
    return _HEADER.pack(_VERSION) + b"".join(_ENTRY.pack(*row) for row in rows)


def grant(acl: Acl, subject: tuple[int, int], permissions: int) -> Acl:
    """Give a user or group exactly these permissions, and no more to any other entry.

    The mask has to contain the new permissions, so entries that it limited until now are reduced.
    """
    limited = _limited(acl)
    return _masked(replace(limited, named={**limited.named, subject: permissions}))


def revoke(acl: Acl, subject: tuple[int, int]) -> Acl:
    """Remove a user's or group's entry."""
    if subject not in acl.named:
        return acl
    limited = _limited(acl)
    others = {key: value for key, value in limited.named.items() if key != subject}
    return _masked(replace(limited, named=others))


def _limited(acl: Acl) -> Acl:
    if acl.mask is None:
        return acl
    limited = {key: value & acl.mask for key, value in acl.named.items()}
    return replace(acl, group=acl.group & acl.mask, named=limited)


def _masked(acl: Acl) -> Acl:
    if not acl.named:
        return replace(acl, mask=None)
    mask = acl.group
    for permissions in acl.named.values():
        mask |= permissions
    return replace(acl, mask=mask)


def read(path: str, attribute: str = ACCESS) -> Acl | None:
    """The list of a file; None if it has none. Raises OSError, ValueError."""
    try:
        return parse(os.getxattr(path, attribute))
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        raise


def read_access(path: str, status: os.stat_result) -> Acl:
    """The access list of a file, or that of its mode; raises OSError, ValueError."""
    return read(path) or of_mode(status.st_mode)


def write(path: str, acl: Acl, attribute: str = ACCESS) -> None:
    """Set the list; one without named entries becomes plain permissions. Raises OSError."""
    os.setxattr(path, attribute, encode(acl))


def remove_default(path: str) -> None:
    """Remove the default list, which new files inherit; raises OSError."""
    try:
        os.removexattr(path, DEFAULT)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise


def is_supported(path: str) -> bool:
    """Whether this file system has such lists; raises OSError."""
    try:
        read(path)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


def for_kind(permissions: int, mode: int, owner: int) -> int:
    """Permissions of a share on one file: execute for folders, or if the owner has it."""
    if stat.S_ISDIR(mode):
        return permissions | EXECUTE
    return permissions | (owner & EXECUTE)
