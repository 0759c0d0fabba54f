"""The way from the portal's pages into an app."""

from __future__ import annotations

from flask import redirect, request
from flask.typing import ResponseReturnValue

from portal.errors import NotFound
from portal.web.context import person, services
from portal.web.enter import enter_url
from portal.web.pages.blueprint import blueprint
from portal.web.paths import local_path


@blueprint.post("/sessions/<session_id>/apps/<app>/open")
def open_app(session_id: str, app: str) -> ResponseReturnValue:
    """Start an app if need be, and go to its origin with a ticket."""
    return redirect(enter_url(services().access.open_app(person(), session_id, app)), 303)


@blueprint.get("/open/<label>")
def open_label(label: str) -> ResponseReturnValue:
    """Somebody came to an app's origin without its cookie: give the owner a ticket."""
    # Only as a page of its own: an app's script must not fetch or frame its way in here.
    if request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
        raise NotFound("There is nothing here.")
    if request.headers.get("Sec-Fetch-Dest", "document") != "document":
        raise NotFound("There is nothing here.")
    try:
        link = services().access.owner_link(person(), label)
    except NotFound:
        text = "Its session is over, or it is somebody else's."
        raise NotFound(f"There is no app at this address. {text}") from None
    return redirect(enter_url(link, local_path(request.args.get("next"))), 303)
