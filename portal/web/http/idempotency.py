"""Idempotency keys of launches."""

from __future__ import annotations

from flask import request

from portal.errors import FieldError, InvalidRequest

HEADER = "Idempotency-Key"
_MAX_KEY = 255


def key_of_request() -> str | None:
    """The key in the header of an API request; raises InvalidRequest."""
    return _checked(request.headers.get(HEADER), HEADER)


def key_of_form() -> str | None:
    """The key in a page's form; raises InvalidRequest."""
    return _checked(request.form.get("key") or None, "key")


def _checked(key: str | None, field: str) -> str | None:
    if key is not None and not (0 < len(key) <= _MAX_KEY and key.isascii() and key.isprintable()):
        raise InvalidRequest([FieldError(field, f"use up to {_MAX_KEY} printable characters")])
    return key
