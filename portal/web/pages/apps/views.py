"""The app launcher, and the way from the portal's pages into an app."""

from __future__ import annotations

from flask import Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.errors import InvalidRequest, NotFound
from portal.web.context import person, services
from portal.web.gate.links import enter_url
from portal.web.pages.apps.cards import AppLauncher, app_launcher, to_options
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.paths import local_path


@blueprint.get("/sessions/<session_id>/apps")
def apps(session_id: str) -> ResponseReturnValue:
    """The launcher: a page, or its content alone for the dialog of the Sessions page."""
    return _launcher(app_launcher(person(), session_id))


@blueprint.get("/sessions/<session_id>/apps/now")
def apps_now(session_id: str) -> ResponseReturnValue:
    """The launcher's content, as an open launcher asks for it by itself."""
    return render_template("_apps.html", pad=app_launcher(person(), session_id))


def _launcher(pad: AppLauncher, status: int = 200) -> Response:
    template = "_apps.html" if by_htmx() else "apps.html"
    return make_response(render_template(template, pad=pad, person=person()), status)


@blueprint.post("/sessions/<session_id>/apps/<app>/open")
def open_app(session_id: str, app: str) -> ResponseReturnValue:
    """Start an app if need be, and go to its origin with a ticket."""
    try:
        link = services().apps.open_app(person(), session_id, app, to_options(request.form))
    except InvalidRequest as error:
        values = request.form.to_dict()
        return _launcher(app_launcher(person(), session_id, app, values, error), error.status)
    if link.notice:
        # A ticket is good for a minute, and people read as long as they like: the page asks anew.
        return render_template("app_told.html", link=link, session_id=session_id, app=app)
    return redirect(enter_url(link), 303)


@blueprint.post("/sessions/<session_id>/apps/<app>/private")
def make_private(session_id: str, app: str) -> ResponseReturnValue:
    """Open an app to its owner alone again."""
    services().apps.make_private(person(), session_id, app)
    return _done(session_id)


@blueprint.post("/sessions/<session_id>/apps/<app>/close")
def close_app(session_id: str, app: str) -> ResponseReturnValue:
    """Shut every way into an app."""
    services().apps.close_app(person(), session_id, app)
    return _done(session_id)


def _done(session_id: str) -> ResponseReturnValue:
    return apps(session_id) if by_htmx() else redirect(f"/sessions/{session_id}/apps", 303)


@blueprint.get("/open/<label>")
def open_label(label: str) -> ResponseReturnValue:
    """Somebody came to an app's origin without its cookie: give the owner a ticket."""
    # Only as a page of its own: an app's script must not fetch or frame its way in here.
    if request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
        raise NotFound("There is nothing here.")
    if request.headers.get("Sec-Fetch-Dest", "document") != "document":
        raise NotFound("There is nothing here.")
    try:
        link = services().apps.owner_link(person(), label)
    except NotFound:
        text = "Its session is over, or it is somebody else's."
        raise NotFound(f"There is no app at this address. {text}") from None
    return redirect(enter_url(link, local_path(request.args.get("next"))), 303)
