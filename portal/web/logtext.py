"""A session's log, cut between letters and never inside one."""

from __future__ import annotations

import codecs


def decode(data: bytes, offset: int) -> tuple[str, int]:
    """Return the text of a piece of a log, and the byte offset at which to read on."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    waiting = len(decoder.getstate()[0])
    if not text and waiting:  # nothing but the start of a letter that never came
        return decoder.decode(b"", final=True), offset + len(data)
    return text, offset + len(data) - waiting
