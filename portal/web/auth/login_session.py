"""Passwords are exchanged for a random secret; the store knows only its hash."""

from __future__ import annotations

import re

from werkzeug.exceptions import TooManyRequests

from portal.errors import Unauthorized
from portal.web.context import services

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_MAX_PASSWORD = 1024


def check_password(name: str, password: str) -> str:
    """Return the account's name.

    Raises Unauthorized, in the same words whatever was wrong, TooManyRequests when passwords were
    tried too often, and Unavailable when the login node does not answer.
    """
    attempts = services().login_attempts
    # What cannot be an account's name may be a password in the wrong field: not kept.
    tried = name if _NAME.fullmatch(name) else ""
    if wait := attempts.take(tried):
        raise TooManyRequests(retry_after=wait)
    plausible = tried and 0 < len(password) <= _MAX_PASSWORD and "\0" not in password
    if not plausible or not services().authenticate(name, password):
        attempts.refused(tried)
        raise Unauthorized("The name or the password is wrong.")
    attempts.succeeded(name)
    return name
