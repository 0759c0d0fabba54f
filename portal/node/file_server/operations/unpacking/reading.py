"""Reads the archive's file, and decompresses streams, with errors as ArchiveError."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import os
import subprocess
import zlib

from portal.node.file_server.errors import refusal_of
from portal.node.file_server.operations import archive_formats as formats
from portal.node.file_server.operations.unpacking.members import ArchiveError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

PIECE = 256 * 1024
XZ_MEMORY = 256 * 1024**2
"""Bytes; `xz -9` needs 65 MiB."""
_ERRORS = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
DAMAGED = "It is damaged, incomplete, or no such file as its name says."


class ArchiveFile(io.RawIOBase):
    """The bytes that a file had when it was opened, from its beginning."""

    def __init__(self, file: int) -> None:
        """`file`: a descriptor, which remains the caller's."""
        self._file = file
        self._opened = os.fstat(file)
        self._position = 0
        os.posix_fadvise(file, 0, self.size, os.POSIX_FADV_SEQUENTIAL)

    @property
    def size(self) -> int:
        """Bytes."""
        return self._opened.st_size

    def at(self, position: int, count: int) -> bytes:
        """Exactly `count` bytes at a position; raises ArchiveError."""
        pieces = []
        while count > 0:
            piece = self._piece(position, count)
            if not piece:
                raise ArchiveError(DAMAGED)
            pieces.append(piece)
            position, count = position + len(piece), count - len(piece)
        return b"".join(pieces)

    def _piece(self, position: int, count: int) -> bytes:
        most = min(count, self.size - position)
        try:
            return os.pread(self._file, most, position) if most > 0 else b""
        except OSError as error:
            raise ArchiveError(f"It cannot be read: {refusal_of(error).detail}") from error

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        piece = self._piece(self._position, len(buffer))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def check_unchanged(self) -> None:
        """Raise ArchiveError if the file was changed since it was opened."""
        now, then = os.fstat(self._file), self._opened
        if (now.st_mtime_ns, now.st_size) != (then.st_mtime_ns, then.st_size):
            raise ArchiveError("It changed while it was unpacked.", "changed")


class Decompressed:
    """A decompressed stream, whose errors are ArchiveError."""

    def __init__(self, stream: IO[bytes] | io.RawIOBase, close: Callable[[], object]) -> None:
        self._stream, self.close = stream, close

    def read(self, count: int) -> bytes:
        """Up to `count` bytes, fewer only at the end; raises ArchiveError."""
        pieces = []
        try:
            while count > 0 and (piece := self._stream.read(min(count, PIECE))):
                pieces.append(piece)
                count -= len(piece)
        except _ERRORS as error:
            raise ArchiveError(DAMAGED) from error
        return b"".join(pieces)


def decompressed(file: int, archive: ArchiveFile, format: str) -> Decompressed:
    """The stream of a compressed tar file."""
    raw = io.BufferedReader(archive, PIECE)
    if format == formats.GZIP:
        return _closing(gzip.GzipFile(fileobj=raw))
    if format == formats.BZIP2:
        return _closing(bz2.BZ2File(raw))
    if format == formats.XZ:
        return _closing(io.BufferedReader(_Xz(raw), PIECE))
    if format == formats.ZSTD:
        return _zstd(file, raw)
    return _closing(raw)


def _closing(stream: Any) -> Decompressed:
    return Decompressed(stream, stream.close)


class _Xz(io.RawIOBase):
    """One or more xz streams, decompressed with bounded memory."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._new()

    def _new(self) -> None:
        self._stream = lzma.LZMADecompressor(memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            if self._stream.eof:
                rest = (self._stream.unused_data or self._raw.read(PIECE)).lstrip(b"\0")
                if not rest:
                    return 0
                self._new()
            elif self._stream.needs_input:
                rest = self._raw.read(PIECE)
                if not rest:
                    raise EOFError
            else:
                rest = b""
            data = self._stream.decompress(rest, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _zstd(file: int, raw: IO[bytes]) -> Decompressed:
    if formats.has_zstd_module():
        return _closing(importlib.import_module("compression.zstd").ZstdFile(raw))
    running = subprocess.Popen(
        ("zstd", "--decompress", "--stdout", "--quiet"),
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=formats.ENVIRONMENT,
    )
    output = _Output(running)
    return Decompressed(io.BufferedReader(output, PIECE), output.end)


class _Output(io.RawIOBase):
    """The output of a program, which ends with an error if the program does."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        self._running = running

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self._running.stdout is not None  # noqa: S101  # it is a pipe
        count = os.readv(self._running.stdout.fileno(), [buffer])
        if not count and self._running.wait():
            raise EOFError
        return count

    def end(self) -> None:
        """End the program."""
        self._running.kill()
        self._running.communicate()
