"""NFSv4 access control lists."""

from __future__ import annotations

import errno
import os

from portal.node.file_server.access.nfs4_acl import ATTRIBUTE, Ace, encode, parse

PLAIN_ACL = bytes.fromhex(
    "00000003"
    "00000000" "00000000" "001601bf" "00000006" "4f574e4552400000"  # A::rwaxtTcCy:OWNER@
    "00000000" "00000040" "001200a9" "00000006" "47524f5550400000"  # A:g:rxtcy:GROUP@
    "00000000" "00000000" "001200a9" "00000009" "45564552594f4e4540000000"  # A::rxtcy:EVERYONE@
)  # fmt: skip


class Attributes:
    """A file system with NFSv4 access control lists, and no POSIX ones."""

    def __init__(self) -> None:
        self.lists: dict[int, bytes] = {}
        self.supported = True

    def get(self, path: str, name: str) -> bytes:
        if name != ATTRIBUTE or not self.supported:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return self.lists.get(os.stat(path).st_ino, PLAIN_ACL)

    def set(self, path: str, name: str, value: bytes) -> None:
        assert name == ATTRIBUTE
        self.lists[os.stat(path).st_ino] = value


_FLAGS = {"f": 0x1, "d": 0x2, "n": 0x4, "i": 0x8, "g": 0x40}
_MASK = {
    "r": 0x1, "w": 0x2, "a": 0x4, "D": 0x40, "d": 0x10000, "x": 0x20, "t": 0x80, "T": 0x100,
    "n": 0x8, "N": 0x10, "c": 0x20000, "C": 0x40000, "o": 0x80000, "y": 0x100000,
}  # fmt: skip


def read_nfs4(lines: str) -> bytes:
    """The attribute of a list as nfs4_getfacl prints it: type:flags:who:permissions."""
    entries = []
    for line in lines.split():
        kind, flags, who, mask = line.split(":")
        entries.append(
            Ace(
                "AD".index(kind),
                sum(_FLAGS[flag] for flag in flags),
                sum(_MASK[each] for each in mask),
                who,
            )
        )
    return encode(entries)


def show_nfs4(data: bytes) -> str:
    """The attribute as nfs4_getfacl prints it, without line breaks."""
    return " ".join(
        ":".join(
            (
                "AD"[ace.type],
                "".join(flag for flag, bit in _FLAGS.items() if ace.flags & bit),
                ace.who,
                "".join(letter for letter, bit in _MASK.items() if ace.mask & bit),
            )
        )
        for ace in parse(data)
    )
