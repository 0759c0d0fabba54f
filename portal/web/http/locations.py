"""Locations of files in the path of a request, percent-encoded byte by byte."""

from __future__ import annotations

from urllib.parse import quote

from flask import request
from werkzeug.routing import PathConverter

from portal.core.files.location import canonical


class LocationConverter(PathConverter):
    """Matches any path; names may contain line breaks, which "path" does not match."""

    regex = r"[^/][\s\S]*?"


def location_after(prefix: str) -> str:
    """The request's path after a prefix, in canonical form; raises InvalidRequest.

    Names of files may be in any encoding, so the path is read as bytes: decoding would lose bytes
    that are not UTF-8.
    """
    raw = str(request.environ.get("PATH_INFO", "")).encode("latin-1")
    return canonical(quote(raw.removeprefix(prefix.encode())))
