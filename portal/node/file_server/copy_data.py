"""Copies the bytes of a file; keeps holes, and shares blocks where the file system can."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[int], None]

ROUNDS = 4
"""A file that grows faster than it is copied would otherwise be copied forever."""
PIECE = 1024 * 1024
FAST_PIECE = 32 * 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def copy_data(source: int, target: int, progress: Progress, start: int = 0) -> int:
    """Copy to the end of a file of `start` bytes; returns the size that the source had at the end.

    `progress` gets bytes, holes included. Raises OSError.
    """
    copier = _Copier(source, target, progress, start)
    for _ in range(ROUNDS):
        end = os.fstat(source).st_size
        if copier.position >= end or not copier.until(end):
            break
    size = min(copier.position, os.fstat(source).st_size)
    os.ftruncate(target, start + size)
    return size


class _Copier:
    def __init__(self, source: int, target: int, progress: Progress, start: int) -> None:
        self._source, self._target, self._progress = source, target, progress
        self._start = start
        """Where the source begins in the target."""
        self._fast = hasattr(os, "copy_file_range")
        self.position = 0

    def until(self, end: int) -> bool:
        """Copy to this position; False if the file ends before."""
        while self.position < end:
            start = self._next(os.SEEK_DATA, end)
            self._advance(start - self.position)
            stop = self._next(os.SEEK_HOLE, end) if start < end else start
            while self.position < stop:
                count = self._piece(stop - self.position)
                if not count:
                    return False
                self._advance(count)
        return True

    def _advance(self, count: int) -> None:
        if count:
            self.position += count
            self._progress(count)

    def _next(self, what: int, end: int) -> int:
        """Where the next data or hole begins; `end` if there is none before."""
        try:
            return min(os.lseek(self._source, self.position, what), end)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return end
            if error.errno in (
                errno.EINVAL,
                errno.EOPNOTSUPP,
            ):  # unsupported: all of it counts as data
                return self.position if what == os.SEEK_DATA else end
            raise

    def _piece(self, most: int) -> int:
        place = self._start + self.position
        if self._fast:
            try:  # shares blocks instead of copying where the file system can
                count = os.copy_file_range(
                    self._source, self._target, min(most, FAST_PIECE), self.position, place
                )
            except OSError as error:
                if error.errno in _FULL:
                    raise
                count = 0
            if count:
                return count
            self._fast = False  # between file systems, or an old kernel
        piece = os.pread(self._source, min(most, PIECE), self.position)
        written = 0
        while written < len(piece):
            written += os.pwrite(self._target, piece[written:], place + written)
        return len(piece)
