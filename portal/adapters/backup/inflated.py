"""Decompresses a gzip stream, never more than requested, whatever its compression ratio."""

from __future__ import annotations

import io
import zlib
from typing import IO

from portal.adapters.backup.manifest import BadBackup

_PIECE = 64 * 1024
_GZIP = 31
"""zlib's window bits for a gzip header and checksum."""


class InflatingReader(io.RawIOBase):
    """Reads a single gzip member; raises BadBackup for data after it, or zlib.error."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(_GZIP)
        self._unconsumed = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: object, /) -> int:
        """Decompress the next bytes."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # the base class says Buffer
        data = b""
        while not data and not self._inflate.eof and len(view):
            piece = self._unconsumed or self._source.read(_PIECE)
            if not piece:
                raise BadBackup("it is cut off")
            data = self._inflate.decompress(piece, len(view))
            self._unconsumed = self._inflate.unconsumed_tail
        if not data and (self._inflate.unused_data or self._source.read(1)):
            raise BadBackup("it goes on after its end")
        view[: len(data)] = data
        return len(data)
