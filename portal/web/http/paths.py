"""Redirect targets in queries: restricted to this site, with their encoding unchanged."""

from __future__ import annotations

import re
from string import punctuation
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, request

# A backslash is a slash for browsers: after the first one, neither begins a host.
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f]*")
_MAX_LENGTH = 4000
"""The longest URL that HAProxy accepts (`most_url` of portal.cfg.j2)."""
_UNQUOTED = "".join(set(punctuation) - set('"<>'))
"""Characters that browsers send unquoted."""
_ORIGIN = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


def local_path(value: str | None) -> str | None:
    """The path if it belongs to this site, else None."""
    if value is None or len(value) > _MAX_LENGTH or not _LOCAL.fullmatch(value):
        return None
    return value


def next_query(path: str) -> str:
    """The query with a path to return to."""
    return urlencode({"next": path})


def here() -> str:
    """Path and query of the current request as they were sent, byte for byte.

    Bytes beyond ASCII, which no browser sends, are quoted.
    """
    # Set by gunicorn and by werkzeug's test client.
    path = _ORIGIN.sub("", request.environ["RAW_URI"], count=1) or "/"
    return quote(path.encode("latin-1"), safe=punctuation)


class _Redirect(Response):
    def get_wsgi_headers(self, environ: Any) -> Any:
        """Leave the location unchanged: werkzeug would quote characters such as [ and |."""
        headers = super().get_wsgi_headers(environ)
        headers["Location"] = self.headers["Location"]
        return headers


def redirect_to(target: str, status: int = 303) -> Response:
    """Redirect to a URL; only characters that browsers quote are quoted."""
    return _Redirect(status=status, headers={"Location": quote(target, safe=_UNQUOTED)})
