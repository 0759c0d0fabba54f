"""Checks passwords, with limited attempts."""

from __future__ import annotations

import re

from werkzeug.exceptions import TooManyRequests

from portal.errors import Forbidden, Unauthorized
from portal.web.context import services

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_MAX_PASSWORD = 1024
NO_PASSWORDS = (
    "Passwords are not accepted here. Log in with a browser; API tokens are created on the page "
    "“Logins and API tokens”."
)


def check_password(name: str, password: str) -> str:
    """Return the account's name.

    Raises Unauthorized, with the same text for every cause; TooManyRequests after too many
    attempts; Unavailable when the login node does not answer; and Forbidden where the site accepts
    no passwords.
    """
    if not services().settings.oidc.passwords:
        raise Forbidden(NO_PASSWORDS)
    attempts = services().login_attempts
    # An impossible account name may be a password typed into the wrong field: not recorded.
    tried = name if _NAME.fullmatch(name) else ""
    if wait := attempts.take(tried):
        raise TooManyRequests(retry_after=wait)
    plausible = tried and 0 < len(password) <= _MAX_PASSWORD and "\0" not in password
    if not plausible or not services().authenticate(name, password):
        attempts.refused(tried)
        raise Unauthorized("The name or the password is wrong.")
    attempts.succeeded(name)
    return name
