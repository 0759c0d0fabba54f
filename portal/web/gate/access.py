"""Determines the app of a request at an app's origin, and checks the browser's access."""

from __future__ import annotations

from contextlib import suppress

from flask import request

from portal.errors import NotFound
from portal.services.apps.gate import GateStatus
from portal.web.caller import is_plain, note_caller
from portal.web.context import services

MAX_COOKIES = 8
"""Cookies of the same name that are checked."""


def label_of_request() -> str:
    """The label of the request's origin."""
    # HAProxy forwards only app host names; any other name gives a label that no app has.
    return services().settings.web.origins.label_at(request.host) or ""


def cookie_name() -> str:
    """The name of the cookie that admits a browser to the app."""
    return services().settings.web.app_cookie(label_of_request())


def cookies() -> list[str]:
    """The values of that cookie; other origins may have planted some."""
    return request.cookies.getlist(cookie_name())[:MAX_COOKIES]


def find_status() -> GateStatus | None:
    """The status that this browser may see; None for a private app without a valid cookie."""
    with suppress(NotFound):
        status = services().gate.status(label_of_request(), cookies())
        if status.inside and len(cookies()) == 1 and is_plain(cookie_name()):
            note_caller(f"person {status.session.owner}")
        return status
    return None


def portal_url() -> str:
    """The portal's own address, without a slash at its end."""
    return services().settings.web.public_url.rstrip("/")
