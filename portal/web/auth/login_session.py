"""Checks passwords, with limited attempts."""

from __future__ import annotations

from werkzeug.exceptions import TooManyRequests

from portal.errors import Unauthorized
from portal.web.context import services

_MAX_PASSWORD = 1024


def check_password(name: str, password: str) -> str:
    """Return the account's name.

    Raises Unauthorized, with the same text for every cause; TooManyRequests after too many
    attempts; and Unavailable when the login node does not answer.
    """
    attempts = services().login_attempts
    # An impossible account name may be a password typed into the wrong field: not recorded.
    tried = name if services().settings.login.names.permits(name) else ""
    if wait := attempts.take(tried):
        raise TooManyRequests(retry_after=wait)
    plausible = tried and 0 < len(password) <= _MAX_PASSWORD and "\0" not in password
    account = services().authenticate(name, password) if plausible else ""
    if not account:
        attempts.refused(tried)
        raise Unauthorized("The name or the password is wrong.")
    attempts.succeeded(name)
    return account
