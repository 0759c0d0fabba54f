"""Tar in the PAX format, for names and sizes of any length."""

from __future__ import annotations

import stat
from tarfile import BLOCKSIZE, DIRTYPE, PAX_FORMAT, RECORDSIZE, SYMTYPE, TarInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

_ZEROS = bytes(64 * 1024)


class TarArchive:
    """Writes headers and contents one after the other, and keeps nothing in memory."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._written = 0

    def _put(self, piece: bytes) -> None:
        self._write(piece)
        self._written += len(piece)

    def _header(self, path: bytes, status: os.stat_result | None) -> TarInfo:
        info = TarInfo(path.decode("utf-8", "surrogateescape"))
        if status is not None:
            info.mode = stat.S_IMODE(status.st_mode)
            info.mtime = max(int(status.st_mtime), 0)
            info.uid, info.gid = status.st_uid, status.st_gid
        return info

    def _begin(self, info: TarInfo) -> None:
        self._put(info.tobuf(PAX_FORMAT, "utf-8", "surrogateescape"))

    def folder(self, path: bytes, status: os.stat_result) -> None:
        """Add a folder."""
        info = self._header(path, status)
        info.type = DIRTYPE
        self._begin(info)

    def link(self, path: bytes, status: os.stat_result, target: bytes) -> None:
        """Add a link."""
        info = self._header(path, status)
        info.type = SYMTYPE
        info.linkname = target.decode("utf-8", "surrogateescape")
        self._begin(info)

    def file(self, path: bytes, status: os.stat_result, pieces: Iterator[bytes]) -> None:
        """Add a file; if it became shorter than its status says, zeros fill it."""
        info = self._header(path, status)
        info.size = status.st_size
        self._begin(info)
        end = self._written + info.size
        for piece in pieces:
            self._put(piece)
        self._fill(end - self._written)
        self._fill(-info.size % BLOCKSIZE)

    def _fill(self, count: int) -> None:
        while count > 0:
            piece = _ZEROS[:count]
            self._put(piece)
            count -= len(piece)

    def text(self, path: bytes, text: bytes) -> None:
        """Add a generated text file."""
        info = self._header(path, None)
        info.size = len(text)
        self._begin(info)
        self._put(text)
        self._fill(-info.size % BLOCKSIZE)

    def close(self) -> None:
        """Write the end."""
        self._fill(2 * BLOCKSIZE)
        self._fill(-self._written % RECORDSIZE)
