"""Zip files, by their table of contents, of which only one entry at a time is in memory."""

from __future__ import annotations

import bz2
import stat
import struct
import time
import zlib
from dataclasses import dataclass

from portal.node.file_server.location import shown
from portal.node.file_server.operations.unpacking.members import (
    FILE,
    FOLDER,
    LINK,
    LONGEST_TARGET,
    ArchiveError,
    Member,
)
from portal.node.file_server.operations.unpacking.reading import DAMAGED, PIECE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from portal.node.file_server.operations.unpacking.reading import ArchiveFile

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT = 0xFFFF
_WINDOW = 64 * 1024
_ENCRYPTED, _UTF8 = 0x2041, 0x0800
_STORED, _DEFLATED, _BZIP2 = 0, 8, 12
_METHODS = {9: "Deflate64", 14: "LZMA", 93: "Zstandard", 95: "XZ", 98: "PPMd", 99: "AES"}
_FAT = 0
_UNIX, _MACOS = 3, 19
_ZIP64, _NTFS, _TIMES, _UNICODE_PATH = 0x0001, 0x000A, 0x5455, 0x7075
_MOST32 = 0xFFFFFFFF
_EPOCH_OF_NTFS = 11_644_473_600
"""Seconds from 1601 to 1970."""


@dataclass(frozen=True)
class _Entry:
    """An entry of the table of contents."""

    name: bytes
    extra: dict[int, bytes]
    system: int
    flags: int
    method: int
    dos_time: tuple[int, int]
    crc: int
    packed: int
    size: int
    attributes: int
    offset: int


class _Table:
    """The bytes of the table of contents, one after the other."""

    def __init__(self, file: ArchiveFile, start: int, end: int) -> None:
        self._file, self._position, self._end = file, start, end
        self._waiting = memoryview(b"")

    @property
    def is_over(self) -> bool:
        return not self._waiting and self._position >= self._end

    def take(self, count: int) -> bytes:
        """The next `count` bytes; raises ArchiveError."""
        while len(self._waiting) < count:
            piece = self._file.at(self._position, min(_WINDOW, self._end - self._position))
            if not piece:
                raise ArchiveError(DAMAGED)
            self._position += len(piece)
            self._waiting = memoryview(bytes(self._waiting) + piece)
        taken, self._waiting = bytes(self._waiting[:count]), self._waiting[count:]
        return taken


class ZipArchive:
    """A zip file."""

    totals: tuple[int, int] | None
    ends_early = False

    def __init__(self, file: ArchiveFile, check: Callable[[], None]) -> None:
        """Find the table of contents, and read it once; raises ArchiveError.

        `check` is called for each entry.
        """
        self._file = file
        self._start, self._end, self._prefix = _table(file)
        count = size = packed = 0
        for entry in self._entries():
            check()
            _check(entry)
            count, size, packed = count + 1, size + entry.size, packed + entry.packed
        if packed > file.size:  # entries that share their data
            raise ArchiveError(DAMAGED)
        self.totals = (count, size)

    def close(self) -> None:
        """Nothing is open."""

    def members(self) -> Iterator[Member]:
        """Yield the members; raises ArchiveError."""
        for entry in self._entries():
            _check(entry)
            yield self._member(entry)

    def _entries(self) -> Iterator[_Entry]:
        table = _Table(self._file, self._start, self._end)
        while not table.is_over:
            fields = _ENTRY.unpack(table.take(_ENTRY.size))
            if fields[0] != b"PK\1\2":
                raise ArchiveError(DAMAGED)
            name, extra, _ = (table.take(length) for length in fields[10:13])
            yield _entry(fields, name, extra)

    def _member(self, entry: _Entry) -> Member:
        name = _name(entry)
        has_mode = entry.system in (_UNIX, _MACOS) and entry.attributes >> 16
        mode = entry.attributes >> 16 if has_mode else 0
        kind = _kind(name, mode)
        return Member(
            path=name,
            kind=kind,
            size=entry.size if kind == FILE else 0,
            mode=mode or None,
            modified=_modified(entry),
            target=self._target(entry) if kind == LINK else b"",
            data=lambda: self._data(entry),
        )

    def _target(self, entry: _Entry) -> bytes:
        if entry.size > LONGEST_TARGET:
            raise ArchiveError(DAMAGED)
        return b"".join(self._data(entry))

    def _data(self, entry: _Entry) -> Iterator[bytes]:
        """The contents; raises ArchiveError also if their size or checksum differ."""
        size = crc = 0
        try:
            for piece in _unpacked(self._packed(entry), entry.method):
                size, crc = size + len(piece), zlib.crc32(piece, crc)
                if size > entry.size:
                    break
                yield piece
        except (zlib.error, OSError, EOFError, ValueError):
            raise ArchiveError(DAMAGED) from None
        if (size, crc) != (entry.size, entry.crc):
            raise ArchiveError(f"{DAMAGED} (“{shown(entry.name)}”)")

    def _packed(self, entry: _Entry) -> Iterator[bytes]:
        start = entry.offset + self._prefix
        header = _LOCAL.unpack(self._file.at(start, _LOCAL.size))
        if header[0] != b"PK\3\4":
            raise ArchiveError(DAMAGED)
        position = start + _LOCAL.size + header[9] + header[10]
        end = position + entry.packed
        while position < end:
            piece = self._file.at(position, min(PIECE, end - position))
            position += len(piece)
            yield piece


def _table(file: ArchiveFile) -> tuple[int, int, int]:
    """Where the table of contents begins and ends, and how many bytes precede the archive."""
    length = min(file.size, _END.size + _LONGEST_COMMENT)
    tail = file.at(file.size - length, length)
    place = tail.rfind(b"PK\5\6")
    if place < 0 or place + _END.size > length:
        raise ArchiveError(DAMAGED)
    _, disk, _, _, _, size, offset, _ = _END.unpack_from(tail, place)
    end = file.size - length + place
    if (large := _table64(file, end)) is not None:
        end, disk, size, offset = large
    prefix = end - size - offset
    if disk or prefix < 0:
        raise ArchiveError("It has several files, or is damaged.")
    return end - size, end, prefix


def _table64(file: ArchiveFile, end: int) -> tuple[int, int, int, int] | None:
    """Where the table ends, its disk, size and offset, by the record of large files, if any."""
    place = end - _LOCATOR.size - _END64.size
    if place < 0 or file.at(place + _END64.size, 4) != b"PK\6\7":
        return None
    record = _END64.unpack(file.at(place, _END64.size))
    if record[0] != b"PK\6\6":
        raise ArchiveError(DAMAGED)
    return place, record[4], record[8], record[9]


def _entry(fields: tuple[int, ...], name: bytes, extra: bytes) -> _Entry:
    _, made, _, flags, method, clock, date, crc, packed, size, *_, attributes, offset = fields
    blocks = dict(_blocks(extra))
    large = blocks.get(_ZIP64, b"")
    numbers = list(struct.unpack(f"<{len(large) // 8}Q", large[: len(large) // 8 * 8]))
    try:
        size, packed, offset = [
            numbers.pop(0) if number == _MOST32 else number for number in (size, packed, offset)
        ]
    except IndexError:
        raise ArchiveError(DAMAGED) from None
    return _Entry(
        name=name,
        extra=blocks,
        system=made >> 8,
        flags=flags,
        method=method,
        dos_time=(date, clock),
        crc=crc,
        packed=packed,
        size=size,
        attributes=attributes,
        offset=offset,
    )


def _blocks(extra: bytes) -> Iterator[tuple[int, bytes]]:
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        yield kind, extra[4 : 4 + length]
        extra = extra[4 + length :]


def _check(entry: _Entry) -> None:
    """Raise ArchiveError if an entry cannot be unpacked."""
    if entry.flags & _ENCRYPTED:
        words = "It is encrypted. Unpack it in a terminal, with its password."
        raise ArchiveError(words, "encrypted")
    if entry.method not in (_STORED, _DEFLATED, _BZIP2):
        method = _METHODS.get(entry.method, f"method {entry.method}")
        words = f"It is compressed by {method}, which is not known here. Unpack it in a terminal."
        raise ArchiveError(words, "format")


def _name(entry: _Entry) -> bytes:
    """The name in UTF-8 if it can be known, with slashes.

    Programs on Linux write the bytes of the file system, whatever the flag says; older ones on
    Windows write code page 437, and backslashes.
    """
    name, unicode_path = entry.name, entry.extra.get(_UNICODE_PATH, b"")
    if len(unicode_path) > 5 and unicode_path[1:5] == zlib.crc32(name).to_bytes(4, "little"):
        name = unicode_path[5:]
    elif not entry.flags & _UTF8 and not _is_utf8(name):
        name = name.decode("cp437").encode()
    if entry.system == _FAT and b"/" not in name:
        name = name.replace(b"\\", b"/")
    return name


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _kind(name: bytes, mode: int) -> str:
    kind = stat.S_IFMT(mode)
    if name.endswith(b"/") or kind == stat.S_IFDIR:
        return FOLDER
    return LINK if kind == stat.S_IFLNK else FILE


def _modified(entry: _Entry) -> float | None:
    """The time: those that programs add are in UTC, that of DOS is local time."""
    times = entry.extra.get(_TIMES, b"")
    if len(times) >= 5 and times[0] & 1:
        return float(struct.unpack_from("<l", times, 1)[0])
    ntfs = dict(_blocks(entry.extra.get(_NTFS, b"")[4:])).get(1, b"")
    if len(ntfs) >= 8:
        return float(struct.unpack_from("<Q", ntfs)[0]) / 1e7 - _EPOCH_OF_NTFS
    return _of_dos(*entry.dos_time)


def _of_dos(date: int, clock: int) -> float | None:
    day = (date >> 9) + 1980, date >> 5 & 15, date & 31
    try:
        return time.mktime((*day, clock >> 11, clock >> 5 & 63, (clock & 31) * 2, 0, 0, -1))
    except (ValueError, OverflowError):
        return None


def _unpacked(packed: Iterable[bytes], method: int) -> Iterator[bytes]:
    if method == _STORED:
        yield from packed
    elif method == _DEFLATED:
        yield from _inflated(packed)
    else:
        yield from _from_bzip2(packed)


def _inflated(packed: Iterable[bytes]) -> Iterator[bytes]:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    for piece in packed:
        waiting = piece
        while waiting and not stream.eof:
            yield stream.decompress(waiting, PIECE)
            waiting = stream.unconsumed_tail
    while not stream.eof and (rest := stream.decompress(stream.unconsumed_tail, PIECE)):
        yield rest
    if not stream.eof:
        raise EOFError


def _from_bzip2(packed: Iterable[bytes]) -> Iterator[bytes]:
    stream = bz2.BZ2Decompressor()
    for piece in packed:
        waiting = piece
        while not stream.eof:
            yield stream.decompress(waiting, PIECE)
            waiting = b""
            if stream.needs_input:
                break
    if not stream.eof:
        raise EOFError
