"""Splits the log of a session or the output of a job into pieces, between characters."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from portal.core.session.app_log import app_lines

TAIL = 1 << 19
"""Bytes that the page reads first, and for each request of earlier lines."""

PIECE = 1 << 20


@dataclass(frozen=True)
class Piece:
    """A piece of a log as text; its offset and that of the next piece are in bytes."""

    text: str
    offset: int
    following: int


def decode(data: bytes, offset: int) -> tuple[str, int]:
    """Return the text of a piece of a log, and the byte offset of the next piece."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    waiting = len(decoder.getstate()[0])
    if not text and waiting:  # an incomplete character at the end of the file
        return decoder.decode(b"", final=True), offset + len(data)
    return text, offset + len(data) - waiting


def whole_lines(data: bytes, offset: int) -> tuple[bytes, int]:
    """Drop a first line that begins before the piece, and adjust the offset."""
    end = data.find(b"\n") + 1
    if offset == 0 or end == len(data):
        return data, offset
    return data[end:], offset + end


ENOUGH = 1 << 16
"""Bytes of an app's lines that the page shows first."""
MOST_PIECES = 4
"""Pieces that are searched for lines of an app in one request."""

Read = Callable[[int, int], bytes]
"""Reads a log from an offset on; the second argument is the number of bytes."""


def app_piece(read: Read, app: str, offset: int) -> tuple[bytes, int]:
    """The lines of an app from an offset on, and the offset of the next piece."""
    lines, examined = app_lines(read(offset, PIECE), app)
    return lines, offset + examined


def app_tail(read: Read, app: str, end: int) -> tuple[bytes, int, int]:
    """The last lines of an app before `end`: the text, its offset, and that of the next piece."""
    tail, following, start = b"", end, end
    for _ in range(MOST_PIECES):
        size = min(PIECE, start)
        data, begin = whole_lines(read(start - size, size), start - size)
        lines, examined = app_lines(data, app)
        if start == end:
            following = begin + examined
        tail, start = lines + tail, begin if size else 0
        if start == 0 or len(tail) >= ENOUGH:
            break
    return tail, start, following


def stream_app(read: Read, app: str, size: int) -> Iterator[bytes]:
    """Yield the lines of an app in the first `size` bytes of a log."""
    offset = 0
    while offset < size:
        lines, following = app_piece(lambda at, most: read(at, min(most, size - at)), app, offset)
        if following == offset:
            return
        offset = following
        if lines:
            yield lines


def stream(read: Read, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of a log in pieces; the log may grow meanwhile."""
    sent = 0
    while sent < size:
        piece = read(sent, min(PIECE, size - sent))
        if not piece:
            return  # deleted: the browser sees that the body is incomplete
        sent += len(piece)
        yield piece
