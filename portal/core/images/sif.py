"""Headers of SIF files: the file system's extent, and reproducible ids and times.

An image's digest is the SHA-256 of the file system in it, independent of the SIF header. The random
id and the creation times that Apptainer writes into the header are replaced by values that depend
on the content, so that two builds of the same sources give the same file.
"""

from __future__ import annotations

import re
import struct
import uuid
from typing import NamedTuple

from portal.core.images.names import ImageError
from portal.node.common.sif import DESCRIPTOR, HEADER, Header, code_of_machine, has_magic

MOST_BYTES = 128 * 1024
"""Enough of a file for its header and all descriptors."""
LAUNCH = b"#!/usr/bin/env run-singularity\n"
"""The launch script that Apptainer writes at the start of the header."""
_PARTITION, _PRIMARY = 0x4004, 2


class Extent(NamedTuple):
    """A part of a file, in bytes."""

    offset: int
    size: int


def primary_partition(head: bytes) -> Extent:
    """The system partition, from the first bytes of a file; raises ImageError."""
    if len(head) < HEADER.size:
        raise ImageError("this is not a SIF file: it is too short")
    if not has_magic(head):
        raise ImageError("this is not a SIF file")
    header = Header(head)
    for number in range(header.descriptors):
        position = header.table + number * DESCRIPTOR.size
        if position < 0 or position + DESCRIPTOR.size > len(head):
            break
        kind, used, _, _, _, offset, size, *_, extra = DESCRIPTOR.unpack_from(head, position)
        _, purpose = struct.unpack_from("<ii", extra)
        if used and kind == _PARTITION and purpose == _PRIMARY:
            return Extent(offset, size)
    raise ImageError("this SIF file has no file system")


def without_times(head: bytes, digest: str, epoch: int) -> bytes:
    """Replace id and times in the first bytes of a file; `epoch`: seconds since 1970."""
    fixed = bytearray(head)
    fields = list(HEADER.unpack_from(fixed))
    fields[0], fields[4] = LAUNCH.ljust(32, b"\0"), _uuid(digest)
    fields[5] = fields[6] = epoch
    HEADER.pack_into(fixed, 0, *fields)
    total, start = fields[8], fields[9]
    for position in range(start, start + total * DESCRIPTOR.size, DESCRIPTOR.size):
        if position < 0 or position + DESCRIPTOR.size > len(fixed):
            break
        values = list(DESCRIPTOR.unpack_from(fixed, position))
        if values[1]:
            values[8] = values[9] = epoch
            DESCRIPTOR.pack_into(fixed, position, *values)
    return bytes(fixed)


def id_of_header(head: bytes) -> str:
    """The id of a SIF file in hexadecimal, from its first bytes; "" if it has none."""
    if len(head) < HEADER.size or not has_magic(head):
        return ""
    id = Header(head).id
    return id.hex() if any(id) else ""


def id_of_digest(digest: str) -> str:
    """The id of a file built by `slipway images build`, from its file system's digest."""
    return _uuid(digest).hex() if re.fullmatch(r"[0-9a-f]{64}", digest) else ""


def _uuid(digest: str) -> bytes:
    """A UUID of version 5 from a digest."""
    return uuid.UUID(bytes=bytes.fromhex(digest[:32]), version=5).bytes


def architecture_code(machine: str) -> str:
    """The code of a machine type (`uname -m`) for `apptainer sif add`; raises ImageError."""
    code = code_of_machine(machine)
    if not code:
        raise ImageError(f"SIF files have no machine type {machine}")
    return code.lstrip("0")
