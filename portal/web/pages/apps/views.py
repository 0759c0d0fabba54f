"""The app launcher, and redirects from the portal into apps."""

from __future__ import annotations

import secrets

from flask import Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.session.end_reasons import FINDING_OUT
from portal.core.session.session import Session, State
from portal.errors import InvalidRequest, NotFound
from portal.web.context import person, services
from portal.web.gate.links import enter_url
from portal.web.http.paths import local_path
from portal.web.pages.apps.cards import AppLauncher, app_launcher, to_options
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.sessions.warnings import EndedSession


@blueprint.get("/sessions/<session_id>/apps")
def apps(session_id: str) -> ResponseReturnValue:
    """The launcher: a page, or only its content for the dialog of the Sessions page."""
    change = request.args.get("change", "")
    return _launcher(app_launcher(person(), session_id, change=change))


@blueprint.get("/sessions/<session_id>/apps/now")
def apps_now(session_id: str) -> ResponseReturnValue:
    """The launcher's content, which an open launcher polls."""
    return render_template("_apps.html", launcher=app_launcher(person(), session_id))


def _launcher(launcher: AppLauncher, status: int = 200) -> Response:
    template = "_apps.html" if by_htmx() else "apps.html"
    return make_response(render_template(template, launcher=launcher, person=person()), status)


@blueprint.post("/sessions/<session_id>/apps/<app>/open")
def open_app(session_id: str, app: str) -> ResponseReturnValue:
    """Start an app if necessary, and redirect to its origin with a ticket."""
    try:
        link = services().apps.open_app(person(), session_id, app, to_options(request.form))
    except InvalidRequest as error:
        values = request.form.to_dict()
        return _launcher(app_launcher(person(), session_id, app, values, error), error.status)
    if link.notice:
        # The ticket would expire while the notice is read, so the page requests another one.
        return render_template("app_notice.html", link=link, session_id=session_id, app=app)
    return redirect(enter_url(link, _file_path(app)), 303)


def _file_path(app: str) -> str | None:
    """The app's path for a file (`file` in the form: encoded, relative to the home)."""
    spec, path = services().catalog().apps.get(app), request.form.get("file", "")
    return local_path(f"{spec.files}/{path}") if spec and spec.files and path else None


@blueprint.post("/sessions/<session_id>/apps/<app>/private")
def make_private(session_id: str, app: str) -> ResponseReturnValue:
    """Make a public app private again."""
    services().apps.make_private(person(), session_id, app)
    return _show_launcher(session_id)


@blueprint.post("/sessions/<session_id>/apps/<app>/close")
def close_app(session_id: str, app: str) -> ResponseReturnValue:
    """Revoke all access to an app."""
    services().apps.close_app(person(), session_id, app)
    return _show_launcher(session_id)


@blueprint.post("/sessions/<session_id>/apps/<app>/stop")
def stop_app(session_id: str, app: str) -> ResponseReturnValue:
    """Stop an app and everything that runs in it."""
    services().apps.stop_app(person(), session_id, app)
    return _show_launcher(session_id)


@blueprint.post("/sessions/<session_id>/apps/<app>/restart")
def restart_app(session_id: str, app: str) -> ResponseReturnValue:
    """Stop an app, and start it as before."""
    services().apps.restart_app(person(), session_id, app)
    return _show_launcher(session_id)


def _show_launcher(session_id: str) -> ResponseReturnValue:
    return apps(session_id) if by_htmx() else redirect(f"/sessions/{session_id}/apps", 303)


@blueprint.get("/open/<label>")
def open_label(label: str) -> ResponseReturnValue:
    """Redirect the owner with a ticket to an app's origin, after an invalid cookie there."""
    # Top-level navigation only: an app's script must not fetch or frame this.
    if request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
        raise NotFound("There is nothing here.")
    if request.headers.get("Sec-Fetch-Dest", "document") != "document":
        raise NotFound("There is nothing here.")
    try:
        link = services().apps.owner_link(person(), label)
    except NotFound:
        ended = services().apps.ended_session(person(), label)
        if ended is not None:
            return _ended(ended)
        text = "Its session is over, or it is somebody else's."
        raise NotFound(f"There is no app at this address. {text}") from None
    return redirect(enter_url(link, local_path(request.args.get("next"))), 303)


def _ended(session: Session) -> Response:
    """The page of an ended session whose app had this address; only for its owner."""
    key = secrets.token_urlsafe(16)
    page = render_template("ended.html", end=EndedSession(session), key=key, person=person())
    response = make_response(page, 410)
    if session.state is State.ENDING or session.end_text == FINDING_OUT:
        response.headers["Refresh"] = "3"  # until its end is known and explained
    return response
