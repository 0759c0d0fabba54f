"""Preconditions of requests (RFC 9110, 13), the same for every method and door."""

from __future__ import annotations

import re
import time

from portal.node.file_server.entries import etag
from portal.node.file_server.errors import Refused
from portal.node.file_server.headers import parse_date

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.roots import Roots

MATCH, NONE_MATCH = "If-Match", "If-None-Match"
UNMODIFIED, MODIFIED = "If-Unmodified-Since", "If-Modified-Since"
_TAG = re.compile(r'(?:W/)?"[^"\x00-\x20\x7f]*"')


def check(roots: Roots, request: Request, location: Location) -> None:
    """Raise Refused (412) if a precondition of a change is not met, 400 if it is malformed.

    To be called when nothing else prevents the change, and again right before it if that takes
    long.
    """
    if any(name in request.headers for name in (MATCH, NONE_MATCH, UNMODIFIED)):
        evaluate(request, state_of(roots, location))


def evaluate(request: Request, current: os.stat_result | None) -> bool:
    """Whether the client has the current state already (304, only for GET and HEAD).

    `current`: None if there is no such file. In the order of RFC 9110, 13.2.2; raises Refused.
    """
    expected, unmodified = _field(request, MATCH), parse_date(_field(request, UNMODIFIED))
    if expected:
        if current is None or not _lists(expected, etag(current), MATCH, weak=False):
            raise _changed(MATCH)
    elif unmodified is not None and current is not None and int(current.st_mtime) > unmodified:
        raise _changed(UNMODIFIED)
    reads = request.command in ("GET", "HEAD")
    known, modified = _field(request, NONE_MATCH), parse_date(_field(request, MODIFIED))
    if known:
        # A malformed field is refused also if there is no file.
        is_known = _lists(known, etag(current) if current else "", NONE_MATCH, weak=True)
        if is_known and current is not None and not reads:
            raise exists()
        return is_known and current is not None
    is_older = modified is not None and current is not None and int(current.st_mtime) <= modified
    return reads and is_older


def demands_new(request: Request) -> bool:
    """Whether a file may be created only, not replaced."""
    return _field(request, NONE_MATCH) == "*"


def exists() -> Refused:
    """The refusal of If-None-Match."""
    return Refused(412, "exists", "This file exists already.", NONE_MATCH)


def permits_range(request: Request, current: os.stat_result) -> bool:
    """Whether If-Range, if there is one, permits a partial answer."""
    condition = _field(request, "If-Range")
    if not condition or condition == etag(current):
        return True
    # A file that changed within the last second may change again within that second.
    is_settled = time.time() - current.st_mtime >= 1
    return is_settled and parse_date(condition) == int(current.st_mtime)


def state_of(roots: Roots, location: Location) -> os.stat_result | None:
    """The status of what a location leads to; None if there is nothing.

    Of a link that is not followed, its own.
    """
    for follow in (True, False):
        try:
            with roots.resolve(location, follow=follow) as dentry:
                return dentry.status()
        except Refused:
            continue
    return None


def _field(request: Request, name: str) -> str:
    """A field's value; several lines are one list."""
    return ", ".join(request.headers.get_all(name, ())).strip()


def _lists(field: str, tag: str, name: str, *, weak: bool) -> bool:
    """Whether a list of entity tags, or “*”, has this one; raises Refused (400)."""
    if field == "*":
        return True
    if _TAG.sub("", field).strip(" \t,"):
        raise Refused(400, "value", 'Write "*" or quoted entity tags.', name)
    tags = _TAG.findall(field)
    return tag in [each[2:] if weak and each.startswith("W/") else each for each in tags]


def _changed(field: str) -> Refused:
    return Refused(412, "changed", "The file has changed since you opened it.", field)
