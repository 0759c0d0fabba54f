"""Addresses that travel through a query must not lead to another site."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from flask import request

# One slash, then no second slash or backslash (browsers read both as the start of a host).
_LOCAL = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
_MAX_LENGTH = 2000


def local_path(value: str | None) -> str | None:
    """The path, if it is one of this very site; else None."""
    if value is None or len(value) > _MAX_LENGTH or not _LOCAL.fullmatch(value):
        return None
    return value


def next_query(path: str) -> str:
    """The query that carries a path to come back to."""
    return urlencode({"next": path})


def here() -> str:
    """The path and query of this very request, quoted again as a browser would send it."""
    path = quote(request.path, safe="/:@!$&'()*+,;=~")
    query = request.query_string.decode("ascii", "replace")
    return f"{path}?{query}" if query else path
