"""Redirect targets in queries, which must not lead to another site, and keep their encoding."""

from __future__ import annotations

import re
from string import punctuation
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, request

# A backslash is a slash for browsers: after the first one, neither begins a host.
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f]*")
_MAX_LENGTH = 4000
"""As long as an address that HAProxy lets through (`most_url` of portal.cfg.j2)."""
_UNQUOTED = "".join(set(punctuation) - set('"<>'))
"""What browsers send as it is; they quote the others themselves."""
_ORIGIN = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


def local_path(value: str | None) -> str | None:
    """The path if it is one of this site, else None."""
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
    # gunicorn's, as werkzeug's client has it as well.
    path = _ORIGIN.sub("", request.environ["RAW_URI"], count=1) or "/"
    return quote(path.encode("latin-1"), safe=punctuation)


class _Redirect(Response):
    def get_wsgi_headers(self, environ: Any) -> Any:
        """As given: werkzeug would quote what browsers send as it is, such as [ and |."""
        headers = super().get_wsgi_headers(environ)
        headers["Location"] = self.headers["Location"]
        return headers


def redirect_to(target: str, status: int = 303) -> Response:
    """Redirect to an address, whose encoding is kept; what browsers quote is quoted."""
    return _Redirect(status=status, headers={"Location": quote(target, safe=_UNQUOTED)})
