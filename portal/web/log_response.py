"""Requests for pieces of logs, and their responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import request
from flask.typing import ResponseReturnValue

from portal.errors import Conflict, Unavailable
from portal.web.log_text import Piece


@dataclass(frozen=True)
class LogTab:
    """A part of a log that has a page of its own."""

    title: str
    part: str
    """The query that selects it; "" for the whole log."""


LARGEST = 2**62
"""Offsets in bytes beyond this are past the end of every file."""


def wanted_offset() -> int | None:
    """Where the wanted piece begins; None if only its end is given, or the end of the log."""
    return _number("offset")


def wanted_end() -> int | None:
    """Where the wanted piece ends; None: at the end of the log."""
    return _number("before")


def _number(name: str) -> int | None:
    wanted = request.args.get(name, type=int)
    return None if wanted is None else min(max(wanted, 0), LARGEST)


def piece_response(read: Callable[[], Piece], over: bool) -> ResponseReturnValue:
    """The piece as plain text, with its offsets and whether more may follow; or why not."""
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "X-Over": "yes" if over else "no",
    }
    try:
        piece = read()
    except (Conflict, Unavailable) as error:
        return error.text, error.status, headers
    places = {"X-Offset": str(piece.offset), "X-Next-Offset": str(piece.following)}
    return piece.text, 200, headers | places
