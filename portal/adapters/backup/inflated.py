"""Decompresses a stream of gzip: never more than the reader asks for, however small it was made."""

from __future__ import annotations

import io
import zlib
from typing import IO

from portal.adapters.backup.manifest import BadBackup

_PIECE = 64 * 1024
_GZIP = 31
"""zlib's number for a header and a checksum of gzip's."""


class InflatingReader(io.RawIOBase):
    """One member of gzip, and nothing after it; raises BadBackup or zlib.error."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(_GZIP)
        self._waiting = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: object, /) -> int:
        """Decompress the next bytes."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # the base class says Buffer
        data = b""
        while not data and not self._inflate.eof and len(view):
            piece = self._waiting or self._source.read(_PIECE)
            if not piece:
                raise BadBackup("it is cut off")
            data = self._inflate.decompress(piece, len(view))
            self._waiting = self._inflate.unconsumed_tail
        if not data and (self._inflate.unused_data or self._source.read(1)):
            raise BadBackup("it goes on after its end")
        view[: len(data)] = data
        return len(data)
