"""Writes files while they arrive, and starts writeback early, so that the final sync is short."""

from __future__ import annotations

import ctypes
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

STEP = 16 * 1024 * 1024
"""Bytes after which writeback is started."""
SYNC = 64 * 1024 * 1024
"""The same without sync_file_range(2), where a sync waits."""
_WRITE = 2
"""SYNC_FILE_RANGE_WRITE: start writeback without waiting."""
_KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE"""


def _sync_file_range() -> Any:
    call = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return call


_start_writeback = _sync_file_range()


def write_pieces(
    file: int, body: Iterable[bytes | memoryview], start: int = 0
) -> Iterator[bytes | memoryview]:
    """Write a body from `start` on; yields each piece after it was written. Raises OSError.

    After the last piece the file is synced.
    """
    os.lseek(file, start, os.SEEK_SET)
    position = synced = start
    for piece in body:
        write_all(file, piece)
        position += len(piece)
        yield piece
        if position - synced >= STEP and _write_out(file, synced, position):
            synced = position
    os.fdatasync(file)


def write_all(file: int, piece: bytes | memoryview) -> None:
    """Write all bytes of a piece; raises OSError."""
    view = memoryview(piece)
    while view:
        view = view[os.write(file, view) :]


def _write_out(file: int, start: int, end: int) -> bool:
    """Start writeback of a range; False if it is too small for a sync that waits."""
    if _start_writeback is not None and _start_writeback(file, start, end - start, _WRITE) == 0:
        return True
    if end - start < SYNC:
        return False
    os.fdatasync(file)
    return True


def reserve(file: int, length: int) -> None:
    """Reserve space without changing the size; raises OSError if there is not enough."""
    fallocate: Any = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None or not length:
        return
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if fallocate(file, _KEEP_SIZE, 0, length) != 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(number, os.strerror(number))
