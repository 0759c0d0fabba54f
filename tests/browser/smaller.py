"""Screenshots with at most 256 colours, which are half as large; for those that are kept."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2
PALETTE = 3
MOST = 256


def smaller(content: bytes) -> bytes:
    """The same picture with the colours that it has most of; 8 bits of red, green and blue."""
    parts: dict[bytes, bytes] = {}
    for name, data in _chunks(content):
        parts[name] = parts.get(name, b"") + data
    width, height, depth, kind = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    if (depth, kind) != (8, RGB):
        raise ValueError("not a picture of 8 bits of red, green and blue")
    rows = list(_rows(zlib.decompress(parts[b"IDAT"]), width * 3))
    pixels = [[row[i : i + 3] for i in range(0, len(row), 3)] for row in rows]
    found = Counter(pixel for row in pixels for pixel in row)
    palette = [colour for colour, _ in found.most_common(MOST)]
    index = {colour: _nearest(colour, palette) for colour in found}
    lines = b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, PALETTE, 0, 0, 0)
    return SIGNATURE + b"".join(
        _chunk(name, data)
        for name, data in (
            (b"IHDR", header),
            (b"PLTE", b"".join(palette)),
            (b"IDAT", zlib.compress(lines, 9)),
            (b"IEND", b""),
        )
    )


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        yield content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        place += size + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _rows(raw: bytes, size: int) -> Iterator[bytes]:
    """The rows without their filters (PNG's specification, section 9)."""
    above = bytes(size)
    for place in range(0, len(raw), size + 1):
        kind, row = raw[place], bytearray(raw[place + 1 : place + 1 + size])
        for i in range(size if kind else 0):
            left, corner = (row[i - 3], above[i - 3]) if i >= 3 else (0, 0)
            row[i] = (row[i] + _predicted(kind, left, above[i], corner)) & 255
        above = bytes(row)
        yield above


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 2:
        return up
    if kind == 3:
        return (left + up) >> 1
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


def _nearest(colour: bytes, palette: list[bytes]) -> int:
    distances = [sum((a - b) ** 2 for a, b in zip(colour, one, strict=True)) for one in palette]
    return distances.index(min(distances))
