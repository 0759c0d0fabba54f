"""Tells HAProxy whose cookie or token a request has, so that it counts people instead of addresses.

HAProxy cannot check them itself. It stores a number for each that the portal has confirmed, and
removes the header from the response (templates/haproxy/portal.cfg.j2).
"""

from __future__ import annotations

import hashlib

from flask import Flask, Response, current_app, g, request

HEADER = "X-Slipway-Login"
NOBODY = 0


def install(app: Flask) -> None:
    """Add the header to the responses of an application."""

    @app.after_request
    def tell(response: Response) -> Response:
        number = _number(response.status_code)
        if number is not None:
            response.headers[HEADER] = str(number)
        return response


def note_caller(who: str) -> None:
    """Note whose token, or cookie of an app, a request has; browsers' logins are known."""
    g.caller = who


def number_of(who: str) -> int:
    """The number that HAProxy counts by: 31 bits, never NOBODY."""
    return int.from_bytes(hashlib.sha256(who.encode()).digest()[:4], "big") >> 1 | 1


def is_plain(cookie: str) -> bool:
    """Whether a cookie, if there is any, is spelled as it was set.

    Quotes and escapes spell it in any number of ways, each of which HAProxy would store.
    """
    value = request.cookies.get(cookie)
    parts = (part.lstrip(" ") for part in request.environ.get("HTTP_COOKIE", "").split(";"))
    return value is None or f"{cookie}={value}" in parts


def _number(status: int) -> int | None:
    """The number of whoever has the request's cookie or token; None if it has not been checked."""
    if "caller" in g:
        return number_of(g.caller)
    user = g.get("_login_user")  # Flask-Login's, once it has read the cookie
    # With a token beside the cookie HAProxy counts by the token, which nobody has checked then.
    counts_cookie = "Authorization" not in request.headers and is_plain(
        current_app.config["SESSION_COOKIE_NAME"]
    )
    if user is not None and counts_cookie:
        return number_of(f"person {user.person.name}") if user.is_authenticated else NOBODY
    return NOBODY if status == 401 else None
