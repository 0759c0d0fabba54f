"""Redirect targets in queries, which must not lead to another site."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from flask import request

# One slash, not followed by a slash or backslash (browsers treat both as the start of a host).
_LOCAL = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
_MAX_LENGTH = 2000


def local_path(value: str | None) -> str | None:
    """The path if it is one of this site, else None."""
    if value is None or len(value) > _MAX_LENGTH or not _LOCAL.fullmatch(value):
        return None
    return value


def next_query(path: str) -> str:
    """The query with a path to return to."""
    return urlencode({"next": path})


def here() -> str:
    """Path and query of the current request, quoted as a browser would send them."""
    path = quote(request.path, safe="/:@!$&'()*+,;=~")
    query = request.query_string.decode("ascii", "replace")
    return f"{path}?{query}" if query else path
