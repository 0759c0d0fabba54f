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
    """The rest of the request's path after a prefix, in its one spelling; raises InvalidRequest.

    Names of files may be in any encoding, so the path is read as bytes: the decoded one has lost
    what is no UTF-8.
    """
    raw = str(request.environ.get("PATH_INFO", "")).encode("latin-1")
    return canonical(quote(raw.removeprefix(prefix.encode())))
