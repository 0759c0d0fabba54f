"""Canonical locations of files and folders, on which decisions about access are based."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from portal.errors import FieldError, InvalidRequest

SAFE = "!$'()*+,:;=@~"
"""Characters that are not encoded, the same as in node/file_server/location.py."""


def canonical(location: str, field: str = "path") -> str:
    """Normalise a storage area's name and a path in it, percent-encoded byte by byte.

    Names of files may be in any encoding. Raises InvalidRequest with the field.
    """
    try:
        names = [unquote_to_bytes(name) for name in location.split("/") if name]
    except UnicodeEncodeError:
        raise _wrong(field) from None
    for name in names:
        if name in (b".", b"..") or b"/" in name or b"\0" in name:
            raise _wrong(field)
    return "/".join(quote(name, safe=SAFE) for name in names)


def _wrong(field: str) -> InvalidRequest:
    words = "A name must not be empty, “.” or “..”, and contain no “/”."
    return InvalidRequest([FieldError(field, words)])
