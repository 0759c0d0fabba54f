"""Values of HTTP headers: media types, names of downloads, times."""

from __future__ import annotations

import math
import os
import re
from datetime import timezone
from email.utils import parsedate_to_datetime
from mimetypes import guess_type
from urllib.parse import quote

from portal.node.file_server.errors import Refused

_MOST_SECONDS = 1e11
"""Since the epoch: later times do not fit into file systems."""


def content_type(name: bytes) -> str:
    """The media type of a file by its name; text counts as UTF-8."""
    media_type, encoding = guess_type(os.fsdecode(name).encode("utf-8", "replace").decode())
    if media_type is None or encoding:
        return "application/octet-stream"
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def disposition(name: bytes, download: bool) -> str:
    """The header Content-Disposition (RFC 6266)."""
    plain = re.sub(r'[^ -~]|["\\%]', "_", os.fsdecode(name).encode("ascii", "replace").decode())
    coded = quote(os.fsdecode(name).encode("utf-8", "replace"), safe="")
    kind = "attachment" if download else "inline"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{coded}"


def parse_time(text: str, field: str) -> float:
    """Parse a time in seconds since the epoch, with optional decimals; raises Refused."""
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not abs(time) < _MOST_SECONDS:
        raise Refused(422, "value", "This is not a time in seconds since 1970.", field)
    return time


def parse_date(text: str) -> int | None:
    """An HTTP-date (RFC 9110, 5.6.7) in seconds since the epoch; None if it is not valid."""
    try:
        date = parsedate_to_datetime(text)
        return int((date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp())
    except (TypeError, ValueError, OverflowError):
        return None
