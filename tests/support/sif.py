"""Small files with the format of SIF."""

from __future__ import annotations

import struct

from portal.node.common.sif import DESCRIPTOR, HEADER

START = 4096


def sif(content: bytes, *, id: bytes = b"1" * 16, time: int = 7, purpose: int = 2) -> bytes:
    """A file with one partition, which is the system's if `purpose` is 2."""
    data = START + 2 * DESCRIPTOR.size
    header = HEADER.pack(
        b"#!x\n", b"SIF_MAGIC", b"01", b"02", id, time, time, 1, 2, START, 2 * DESCRIPTOR.size,
        data, len(content),
    )  # fmt: skip
    extra = struct.pack("<ii", 1, purpose)
    used = DESCRIPTOR.pack(
        0x4004, True, 1, 1, 0, data, len(content), len(content), time, time, 0, 0, b"image", extra
    )
    unused = bytes(DESCRIPTOR.size)
    return header.ljust(START, b"\0") + unused + used + content
