"""Where the file system lies in a SIF file.

A SIF's header has a random id and the time of its creation, so two builds of the same sources never
are the same file. The file system in it can be the same: its SHA-256 is an image's digest.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from portal.core.images.names import ImageError

HEADER = struct.Struct("<32s10s3s3s16sqqqqqqqq")
DESCRIPTOR = struct.Struct("<i?IIIqqqqqqq128s384s")
MOST_BYTES = 128 * 1024
"""Enough of a file for its header and all descriptors."""
_MAGIC = b"SIF_MAGIC"
_PARTITION, _PRIMARY = 0x4004, 2


class Extent(NamedTuple):
    """A part of a file, in bytes."""

    offset: int
    size: int


def primary_partition(head: bytes) -> Extent:
    """The system partition, from the first bytes of a file; raises ImageError."""
    if len(head) < HEADER.size:
        raise ImageError("this is not a SIF file: it is too short")
    fields = HEADER.unpack_from(head)
    magic, total, start = fields[1], fields[8], fields[9]
    if not magic.startswith(_MAGIC):
        raise ImageError("this is not a SIF file")
    for number in range(total):
        place = start + number * DESCRIPTOR.size
        if place < 0 or place + DESCRIPTOR.size > len(head):
            break
        kind, used, _, _, _, offset, size, *_, extra = DESCRIPTOR.unpack_from(head, place)
        _, purpose = struct.unpack_from("<ii", extra)
        if used and kind == _PARTITION and purpose == _PRIMARY:
            return Extent(offset, size)
    raise ImageError("this SIF file has no file system")
