"""NFSv4 access control lists as Linux's client shows them: XDR of RFC 7530, section 6.

Set through a descriptor; nfs4_setfacl takes paths only. Entries of other kinds are kept.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ATTRIBUTE = "system.nfs4_acl"
ALLOW = 0
FILE_INHERIT, DIRECTORY_INHERIT, NO_PROPAGATE, INHERIT_ONLY, GROUP = 0x1, 0x2, 0x4, 0x8, 0x40
_READ = 0x1 | 0x8 | 0x80 | 0x20000 | 0x100000
"""READ_DATA, READ_NAMED_ATTRS, READ_ATTRIBUTES, READ_ACL, SYNCHRONIZE."""
_WRITE = 0x2 | 0x4 | 0x10 | 0x100
"""WRITE_DATA, APPEND_DATA, WRITE_NAMED_ATTRS, WRITE_ATTRIBUTES."""
EXECUTE, DELETE_CHILD = 0x20, 0x40
PASS = EXECUTE | 0x80 | 0x100000
"""Traverse a directory without listing it; READ_ATTRIBUTES, SYNCHRONIZE."""
WRITE_DATA = 0x2
_MOST = 10_000
_UINT = struct.Struct(">I")
_ACE = struct.Struct(">III")


@dataclass(frozen=True)
class Ace:
    """An access control entry: type, flags, access mask, and principal (alice@example.org)."""

    type: int
    flags: int
    mask: int
    who: str


def parse(data: bytes) -> list[Ace]:
    """Read the attribute's value; raises ValueError."""
    try:
        (count,) = _UINT.unpack_from(data)
        if count > _MOST:
            raise ValueError("too many entries")
        entries, offset = [], _UINT.size
        for _ in range(count):
            kind, flags, mask = _ACE.unpack_from(data, offset)
            (length,) = _UINT.unpack_from(data, offset + _ACE.size)
            start = offset + _ACE.size + _UINT.size
            principal = data[start : start + length]
            if len(principal) != length:
                raise ValueError("an entry is cut off")
            entries.append(Ace(kind, flags, mask, principal.decode("utf-8", "surrogateescape")))
            offset = start + (length + 3) // 4 * 4
    except struct.error as error:
        raise ValueError("not an NFSv4 access control list") from error
    return entries


def encode(entries: Sequence[Ace]) -> bytes:
    """The attribute's value."""
    parts = [_UINT.pack(len(entries))]
    for ace in entries:
        principal = ace.who.encode("utf-8", "surrogateescape")
        parts += [_ACE.pack(ace.type, ace.flags, ace.mask), _UINT.pack(len(principal)), principal]
        parts.append(b"\0" * (-len(principal) % 4))
    return b"".join(parts)


def read(path: str) -> list[Ace]:
    """The entries of a file; raises OSError, ValueError."""
    return parse(os.getxattr(path, ATTRIBUTE))


def write(path: str, entries: Sequence[Ace]) -> None:
    """Set the entries of a file; raises OSError."""
    os.setxattr(path, ATTRIBUTE, encode(entries))


def is_supported(path: str) -> bool:
    """Whether this file has such entries."""
    try:
        read(path)
    except (OSError, ValueError):
        return False
    return True


def domain(entries: Iterable[Ace]) -> str:
    """The domain that the server's names end with; "" if no entry shows it."""
    for ace in entries:
        name, _, after = ace.who.rpartition("@")
        if name and after:
            return after
    return ""


def mask_of(write_too: bool, is_folder: bool, execute: bool) -> int:
    """The access mask of a share."""
    mask = _READ | (_WRITE if write_too else 0)
    if write_too and is_folder:
        mask |= DELETE_CHILD
    return mask | (EXECUTE if is_folder or execute else 0)


def grant(entries: Sequence[Ace], who: str, mask: int, *, group: bool, inherit: bool) -> list[Ace]:
    """Allow this before all other entries, and remove earlier entries of the same principal."""
    flags = (GROUP if group else 0) | (FILE_INHERIT | DIRECTORY_INHERIT if inherit else 0)
    return [Ace(ALLOW, flags, mask, who), *revoke(entries, {who}, group=group)]


def revoke(entries: Iterable[Ace], names: set[str], *, group: bool) -> list[Ace]:
    """Return the entries without those that allow this user or group something, by any name."""
    return [ace for ace in entries if not is_of(ace, names, group=group)]


def bequeath(entries: Iterable[Ace], names: set[str], *, group: bool) -> list[Ace]:
    """Restrict the entries of this user or group to files that are created in the folder later."""
    inherited = FILE_INHERIT | DIRECTORY_INHERIT
    return [
        replace(ace, flags=ace.flags | INHERIT_ONLY) if is_of(ace, names, group=group) else ace
        for ace in entries
        if ace.flags & inherited or not is_of(ace, names, group=group)
    ]


def is_of(ace: Ace, names: set[str], *, group: bool) -> bool:
    """Whether an entry allows something to this user or group."""
    return ace.type == ALLOW and bool(ace.flags & GROUP) == group and ace.who in names
