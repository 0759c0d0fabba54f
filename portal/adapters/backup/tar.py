"""Reads the tar file of a backup: a sequence of regular files only.

tarfile reads extension headers, such as long names, into memory without a limit on their size, and
interprets those of sparse files. Backups use a single extension: the size of a file of 8 GiB or
more.
"""

from __future__ import annotations

import re
import tarfile
from typing import IO

from portal.adapters.backup.manifest import BadBackup
from portal.errors import clip

_BLOCK = 512
_SIZE = re.compile(rb"([0-9]{2}) size=([1-9][0-9]{0,18})\n")
"""The only extended header that is read: pax's size record, which begins with its length."""


class TarReader:
    """A tar file as a stream; all methods raise BadBackup for content that no backup has."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._remaining = 0
        """Unread bytes of the current file."""
        self._padding = 0

    def next(self) -> tuple[str, int] | None:
        """Name and size of the next file, once the current one has been read; None at the end."""
        self._exactly(self._padding)
        header = self._exactly(_BLOCK)
        if header == bytes(_BLOCK):
            self._end()
            return None
        info = _parsed(header)
        if info.type == tarfile.XHDTYPE:
            size = self._size_of_next(info.size)
            info = _parsed(self._exactly(_BLOCK))
            info.size = size
        if info.type != tarfile.REGTYPE or info.size < 0:
            raise BadBackup(f"it has something that is not a regular file: {clip(info.name)!r}")
        self._remaining, self._padding = info.size, -info.size % _BLOCK
        return info.name, info.size

    def read(self, most: int) -> bytes:
        """The next bytes of the current file; empty at its end."""
        piece = self._stream.read(min(most, self._remaining))
        if self._remaining and not piece:
            raise BadBackup("it is cut off")
        self._remaining -= len(piece)
        return piece

    def _size_of_next(self, length: int) -> int:
        if length > _BLOCK:
            raise BadBackup("it has an extension header")
        block = self._exactly(_BLOCK)
        match = _SIZE.fullmatch(block[:length])
        if match is None or int(match[1]) != length or any(block[length:]):
            raise BadBackup("it has an extension header")
        return int(match[2])

    def _end(self) -> None:
        # tar files end with two blocks of zeros, and zeros up to a whole record.
        padding = self._stream.read(tarfile.RECORDSIZE + 1)
        if len(padding) > tarfile.RECORDSIZE or any(padding):
            raise BadBackup("it goes on after its end")

    def _exactly(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) < count:
            raise BadBackup("it is cut off")
        return data


def _parsed(header: bytes) -> tarfile.TarInfo:
    """Parse one header without reading further; raises BadBackup."""
    try:
        return tarfile.TarInfo.frombuf(header, "utf-8", "backslashreplace")
    except tarfile.HeaderError:
        raise BadBackup("it is not a tar file") from None
