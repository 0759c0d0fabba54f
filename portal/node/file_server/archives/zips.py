"""Zip, for people on Windows: sizes follow the contents, ZIP64 where it is needed."""

from __future__ import annotations

import stat
import time
import zlib
from itertools import chain
from typing import cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from typing import IO

_FAST = 1
"""Of the levels of deflate: the others take several times as long for a few percent."""
_SAMPLE = 64 * 1024
_WORTH = 0.95
"""Of its size; most large files are compressed already, and would only take time."""
_UNIX = 3
_IS_FOLDER = 0x10
_FIRST, _LAST = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)


class _Sink:
    """A write-only file that ignores everything after an error.

    ZipFile writes its table of contents even then, when it is destroyed.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._failed = False

    def write(self, piece: bytes) -> int:
        if not self._failed:
            self._failed = True
            self._write(bytes(piece))
            self._failed = False
        return len(piece)

    def flush(self) -> None:
        """Nothing waits here."""


class ZipArchive:
    """Writes to a stream; only the names and sizes are kept until the end, as zip requires."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._zip = ZipFile(cast("IO[bytes]", _Sink(write)), "w", ZIP_DEFLATED, allowZip64=True)

    def _info(self, path: bytes, status: os.stat_result | None, mode: int) -> ZipInfo:
        when = time.localtime(status.st_mtime if status else time.time())[:6]
        name = name_of(path)
        while name in self._zip.NameToInfo:
            name += "_"
        info = ZipInfo(name, min(max(when, _FIRST), _LAST))
        info.create_system = _UNIX
        info.external_attr = mode << 16
        return info

    def folder(self, path: bytes, status: os.stat_result) -> None:
        """Add a folder."""
        info = self._info(path + b"/", status, status.st_mode)
        info.external_attr |= _IS_FOLDER
        self._zip.writestr(info, b"")

    def link(self, path: bytes, status: os.stat_result, target: bytes) -> None:
        """Add a link, as Info-ZIP does: its target is its contents."""
        self._zip.writestr(self._info(path, status, status.st_mode), target)

    def file(self, path: bytes, status: os.stat_result, pieces: Iterator[bytes]) -> None:
        """Add a file."""
        info = self._info(path, status, stat.S_IFREG | stat.S_IMODE(status.st_mode))
        info.file_size = status.st_size  # decides on ZIP64; the real size follows the contents
        first = next(pieces, b"")
        info.compress_type = ZIP_DEFLATED if _shrinks(first[:_SAMPLE]) else ZIP_STORED
        info._compresslevel = _FAST  # type: ignore[attr-defined]
        with self._zip.open(info, "w") as file:
            for piece in chain((first,), pieces):
                file.write(piece)

    def text(self, path: bytes, text: bytes) -> None:
        """Add a generated text file."""
        self._zip.writestr(self._info(path, None, stat.S_IFREG | 0o644), text)

    def close(self) -> None:
        """Write the table of contents."""
        self._zip.close()


def _shrinks(piece: bytes) -> bool:
    return len(zlib.compress(piece, _FAST)) < len(piece) * _WORTH


def name_of(path: bytes) -> str:
    """The name in a zip file: bytes that are not UTF-8, and backslashes, are percent-encoded."""
    text = path.decode("utf-8", "surrogateescape")
    return "".join(
        f"%{ord(character) & 0xFF:02X}"
        if "\udc80" <= character <= "\udcff" or character == "\\"
        else character
        for character in text
    )
