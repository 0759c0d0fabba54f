"""API authentication: `Authorization: Bearer …`, never cookies, so CSRF is impossible."""

from __future__ import annotations

from flask import request

from portal.core.auth.logins import TOKEN, Login
from portal.errors import PortalError, Unauthorized
from portal.web.context import services, set_person

_MAX_TOKEN = 512


class Forbidden(PortalError):
    """The token is valid, but lacks the scope for this request."""

    status = 403
    title = "Not permitted"


def bearer() -> str:
    """The token of the request."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > _MAX_TOKEN:
        raise Unauthorized("Send a token: Authorization: Bearer …")
    return token


def require_token() -> Login:
    """Authenticate the request by its token.

    Raises Unauthorized for an invalid token, and Forbidden for one without the scope.
    """
    logins = services().logins
    login = logins.find(bearer(), TOKEN)
    if login is None:
        raise Unauthorized("This token is unknown, has expired or was revoked.")
    needed = "read" if request.method in ("GET", "HEAD") else "write"
    if not login.allows(needed):
        raise Forbidden(f"This token was created without the scope “{needed}”.")
    logins.keep_alive(login)
    set_person(logins.person(login))
    return login
