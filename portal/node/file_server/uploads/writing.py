"""Writes files while they arrive, so that little is left to write to the disk at the end."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

STEP = 16 * 1024 * 1024
"""Bytes after which the disk gets something to do."""
SYNC = 64 * 1024 * 1024
"""The same where the kernel can only be asked to write and wait."""
_WRITE = 2
"""SYNC_FILE_RANGE_WRITE: begin to write what is in memory, without waiting."""


def _sync_file_range() -> Any:
    call = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return call


_begin = _sync_file_range()


def write_pieces(
    file: int, body: Iterable[bytes | memoryview], start: int = 0
) -> Iterator[bytes | memoryview]:
    """Write a body from `start` on; yields each piece after it was written. Raises OSError.

    All of it is on the disk when the body has ended.
    """
    os.lseek(file, start, os.SEEK_SET)
    position = begun = start
    for piece in body:
        write_all(file, piece)
        position += len(piece)
        yield piece
        if position - begun >= STEP and _write_out(file, begun, position):
            begun = position
    os.fdatasync(file)


def write_all(file: int, piece: bytes | memoryview) -> None:
    """Write all bytes of a piece; raises OSError."""
    view = memoryview(piece)
    while view:
        view = view[os.write(file, view) :]


def _write_out(file: int, start: int, end: int) -> bool:
    """Have the disk write a part of the file; False if it is too early for that."""
    if _begin is not None and _begin(file, start, end - start, _WRITE) == 0:
        return True
    if end - start < SYNC:
        return False
    os.fdatasync(file)
    return True
