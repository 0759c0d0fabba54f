"""API authentication: `Authorization: Bearer …`, never cookies, so CSRF is impossible.

A service's token acts for the user in the header `Slipway-User`.
"""

from __future__ import annotations

from flask import request

from portal.core.auth.logins import TOKEN
from portal.errors import Forbidden, Unauthorized
from portal.web.caller import note_caller
from portal.web.context import person, services, set_person

_MAX_TOKEN, _MAX_USER = 512, 64
ACTING_FOR = "Slipway-User"


def bearer() -> str:
    """The token of the request."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    # Exactly one space (RFC 6750): HAProxy stores each spelling (web/caller.py).
    if scheme.lower() != "bearer" or not token or token != token.strip() or len(token) > _MAX_TOKEN:
        raise Unauthorized("Send a token: Authorization: Bearer …")
    return token


def require_token(for_services: bool = False, area: str = "") -> None:
    """Authenticate the request by a user's token, or a service's token if `for_services`.

    `area`: "files:" if the token needs scopes of that area.

    Raises Unauthorized for an invalid token, and Forbidden for one without the scope.
    """
    user = request.headers.get(ACTING_FOR)
    if user is None:
        _require_own(area)
    elif for_services:
        _require_service(user)
    else:
        raise Forbidden("A service cannot do this for a user.")
    if request.headers.get("Authorization", "").startswith("Bearer "):  # the usual spelling
        note_caller(f"person {person().name}")


def _reads() -> bool:
    return request.method in ("GET", "HEAD")


def _require_own(area: str) -> None:
    logins = services().logins
    login = logins.find(bearer(), TOKEN)
    if login is None:
        raise Unauthorized("This token is unknown, has expired or was revoked.")
    needed = area + ("read" if _reads() else "write")
    if not login.allows(needed):
        raise Forbidden(f"This token was created without the scope “{needed}”.")
    logins.keep_alive(login)
    set_person(logins.person(login))


def _require_service(user: str) -> None:
    if not 0 < len(user) <= _MAX_USER:
        raise Forbidden(f"{ACTING_FOR}: name one user.")
    action = f"{request.method} {request.path}"
    set_person(services().service_tokens.person(bearer(), user, action, changes=not _reads()))
