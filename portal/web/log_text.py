"""A session's log in pieces, cut between characters."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from portal.core.auth.person import Person
from portal.services.session.session_logs import SessionLogs

TAIL = 1 << 19
"""Bytes that the page reads first, and for each request of earlier lines."""

PIECE = 1 << 20


def decode(data: bytes, offset: int) -> tuple[str, int]:
    """Return the text of a piece of a log, and the byte offset of the next piece."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    waiting = len(decoder.getstate()[0])
    if not text and waiting:  # only the start of a character that was never completed
        return decoder.decode(b"", final=True), offset + len(data)
    return text, offset + len(data) - waiting


def whole_lines(data: bytes, offset: int) -> tuple[bytes, int]:
    """Drop a first line that begins before the piece, and adjust the offset."""
    end = data.find(b"\n") + 1
    if offset == 0 or end == len(data):
        return data, offset
    return data[end:], offset + end


def stream(logs: SessionLogs, person: Person, session: str, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of a log in pieces; the log may grow meanwhile."""
    sent = 0
    while sent < size:
        piece = logs.read(person, session, sent, min(PIECE, size - sent))
        if not piece:
            return  # deleted: the browser sees that the body is incomplete
        sent += len(piece)
        yield piece
