"""Frames as browsers send them."""

from __future__ import annotations

MASK = b"\x01\x02\x03\x04"


def masked(kind: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame of a browser's."""
    size = len(data)
    head = bytes(((0x80 if final else 0) | kind,))
    if size <= 125:
        head += bytes((0x80 | size,))
    else:
        head += bytes((0x80 | 127,)) + size.to_bytes(8, "big")
    return head + MASK + bytes(byte ^ MASK[n % 4] for n, byte in enumerate(data))
