"""Checks passwords, with limited attempts."""

from __future__ import annotations

from portal.errors import Forbidden, PasswordNotTried, Unauthorized
from portal.web.context import services

_MAX_PASSWORD, _MAX_CODE = 1024, 256
NO_PASSWORDS = (
    "Passwords are not accepted here. Log in with a browser; API tokens are created on the page "
    "“Logins and API tokens”."
)


def check_password(name: str, password: str, code: str = "") -> str:
    """Return the account's name.

    Raises Unauthorized, with the same text for every cause; TooManyLogins after too many wrong
    ones; Unavailable when the login node does not answer; and Forbidden where the site accepts
    no passwords.
    """
    if not services().settings.oidc.passwords:
        raise Forbidden(NO_PASSWORDS)
    attempts = services().login_attempts
    # An impossible account name may be a password typed into the wrong field: not recorded.
    tried = name if services().settings.login.names.permits(name) else ""
    attempt = attempts.take(tried)
    code = code.strip()
    plausible = tried and 0 < len(password) <= _MAX_PASSWORD and "\0" not in password
    plausible = plausible and len(code) <= _MAX_CODE and code.isprintable()
    try:
        account = services().authenticate(name, password, code) if plausible else ""
    except PasswordNotTried:
        attempts.not_tried(attempt)
        raise
    if not account:
        attempts.refused(attempt)
        raise Unauthorized(_refusal())
    attempts.succeeded(attempt)
    return account


def _refusal() -> str:
    # The same for every cause, so that it does not reveal that the password alone was right.
    if services().settings.login.second_factor:
        return "The name, the password or the code is wrong."
    return "The name or the password is wrong."
