"""Requests for parts of logs, and their responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import request
from flask.typing import ResponseReturnValue

from portal.errors import Conflict, Unavailable
from portal.web.log_text import Piece


@dataclass(frozen=True)
class LogTab:
    """A part of a log that has its own page."""

    title: str
    part: str
    """The query that selects it; "" for the whole log."""


LARGEST = 2**62
"""Offsets in bytes beyond this are past the end of every file."""


def requested_offset() -> int | None:
    """Offset of the requested piece; None if only its end is given, or neither (the tail)."""
    return _number("offset")


def requested_end() -> int | None:
    """End offset of the requested piece; None for the end of the log."""
    return _number("before")


def _number(name: str) -> int | None:
    value = request.args.get(name, type=int)
    return None if value is None else min(max(value, 0), LARGEST)


def piece_response(read: Callable[[], Piece], over: bool) -> ResponseReturnValue:
    """The piece as plain text with its offsets, and whether the log is complete; or the error."""
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "X-Over": "yes" if over else "no",
    }
    try:
        piece = read()
    except (Conflict, Unavailable) as error:
        return error.text, error.status, headers
    offsets = {"X-Offset": str(piece.offset), "X-Next-Offset": str(piece.following)}
    return piece.text, 200, headers | offsets
