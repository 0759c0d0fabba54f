"""A session's log in pieces, cut between letters and never inside one."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from portal.core.auth.person import Person
from portal.services.session.session_logs import SessionLogs

TAIL = 1 << 19
"""Bytes that a page reads first, and then each time that somebody wants earlier ones."""

PIECE = 1 << 20


def decode(data: bytes, offset: int) -> tuple[str, int]:
    """Return the text of a piece of a log, and the byte offset at which to read on."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    waiting = len(decoder.getstate()[0])
    if not text and waiting:  # nothing but the start of a letter that never came
        return decoder.decode(b"", final=True), offset + len(data)
    return text, offset + len(data) - waiting


def whole_lines(data: bytes, offset: int) -> tuple[bytes, int]:
    """Leave out a line whose start is before the piece; the offset moves with it."""
    end = data.find(b"\n") + 1
    if offset == 0 or end == len(data):
        return data, offset
    return data[end:], offset + end


def stream(logs: SessionLogs, person: Person, session: str, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a log, a piece at a time; it may grow meanwhile."""
    sent = 0
    while sent < size:
        piece = logs.read(person, session, sent, min(PIECE, size - sent))
        if not piece:
            return  # it was deleted: the browser sees that something is missing
        sent += len(piece)
        yield piece
