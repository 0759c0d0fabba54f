"""The application at the apps' origins: exchanges tickets for cookies, serves the waiting page.

HAProxy forwards requests without a route here. This application has no login, no session cookie
and no forms, so that nothing at an app's origin can act on the portal.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from flask import (
    Blueprint,
    Flask,
    Response,
    jsonify,
    make_response,
    redirect,
    render_template,
    request,
)
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import BaseConverter

from portal.core.apps.access import AppState
from portal.core.apps.catalog import AppSpec
from portal.core.cluster.usage import SlurmStatus
from portal.core.session.end_reasons import app_trouble
from portal.core.session.holders import NOTHING, Holdings
from portal.core.session.session import OVER, State
from portal.core.session.status import shown_reason
from portal.errors import NotFound, PortalError, Unauthorized
from portal.services.apps.gate import GateStatus
from portal.services.assembly import Services
from portal.web import bundles, caller, errors, observed
from portal.web.context import EXTENSION, services
from portal.web.gate import own_session
from portal.web.gate.access import cookie_name, cookies, find_status, label_of_request, portal_url
from portal.web.gate.links import ENTER
from portal.web.http.paths import here, local_path, next_query, redirect_to
from portal.web.security import harden

blueprint = Blueprint("gate", __name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' "
    "data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
MARK_SECONDS = 400 * 24 * 3600
"""Lifetime of the cookie with the origin's mark; the longest that browsers accept."""
ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class _Anything(BaseConverter):
    """An app's path, which may have any slashes and line breaks."""

    part_isolating = False
    regex = r"[\s\S]*?"


def build(services: Services, templates: str, static: Path, max_body: int) -> Flask:
    """Build the application that serves all apps' origins; `max_body` in bytes."""
    app = Flask(
        "portal.gate",
        template_folder=templates,
        static_folder=str(static),
        static_url_path="/.slipway/static",
    )
    app.config["MAX_CONTENT_LENGTH"] = max_body
    app.url_map.converters["anything"] = _Anything
    app.extensions[EXTENSION] = services
    observed.install(app)
    bundles.install(app)
    caller.install(app)
    app.jinja_env.globals["site"] = services.settings.web
    app.jinja_env.globals["naming"] = lambda name, version: services.catalog().naming(name, version)
    app.register_blueprint(own_session.blueprint)
    app.register_blueprint(blueprint)
    app.register_error_handler(PortalError, _on_portal_error)
    app.register_error_handler(HTTPException, _on_http_error)

    @app.after_request
    def headers(response: Response) -> Response:
        response.headers["Referrer-Policy"] = "no-referrer"
        harden(response, POLICY)
        return response

    return app


@dataclass(frozen=True)
class Progress:
    """Content of the waiting page; `step` is queued, starting, opening, ready, failed or over."""

    step: str
    message: str
    advice: str = ""
    log: str = ""
    since: datetime | None = None
    """When this step began, if known."""


def progress(
    gate: GateStatus, status: SlurmStatus, now: datetime, holdings: Holdings = NOTHING
) -> Progress:
    """The progress of a session and its app, in words."""
    session = gate.session
    if not gate.inside:
        return _for_everybody(gate)
    if session.state in OVER or session.state is State.ENDING:
        text = session.end_text or "The session is over."
        return Progress("over", text, "Launch it again to use its apps.", session.end_log)
    if session.state is not State.RUNNING:
        step = "starting" if session.state is State.STARTING else "queued"
        since = session.started if session.state is State.STARTING else session.submitted
        reason = shown_reason(session, status, now, holdings)
        text, advice = (reason.text, reason.advice) if reason else ("", "")
        ahead = f"{session.ahead} ahead of it." if step == "queued" and session.ahead else ""
        return Progress(step, text, f"{advice} {ahead}".strip(), since=since)
    if gate.state is AppState.READY:
        return Progress("ready", "Here it comes.")
    if gate.state is AppState.FAILED:
        return Progress("failed", app_trouble(gate.title, gate.message), log=gate.log)
    if gate.state is AppState.STOPPED:
        return Progress("failed", f"{gate.title} has stopped.", log=gate.log)
    if gate.state is AppState.STARTING and gate.message:
        return Progress("opening", f"{gate.message}.", _patience(gate.app), log=gate.log)
    return Progress("opening", f"{gate.title} is starting.")


def _patience(app: AppSpec) -> str:
    wait = f"{app.timeout // 60} minutes" if app.timeout >= 120 else f"{app.timeout} seconds"
    return f"This page opens it as soon as it answers, and gives up after {wait}."


def _for_everybody(gate: GateStatus) -> Progress:
    """Progress for visitors of a public app, without details of the session and its owner."""
    if gate.session.state in OVER or gate.session.state is State.ENDING:
        return Progress("over", "It is no longer available.")
    if gate.session.state is State.RUNNING and gate.state is AppState.READY:
        return Progress("ready", "Here it comes.")
    if gate.state in (AppState.FAILED, AppState.STOPPED):
        text = "It comes back here when its owner starts it again."
        return Progress("failed", "It is not running at the moment.", text)
    return Progress("opening", "It is not available yet.", "It opens here by itself.")


def _progress(gate: GateStatus) -> Progress:
    status, now = services().cluster.slurm_status(), services().clock()
    owner = gate.session.owner
    return progress(gate, status, now, services().sessions.holdings(owner, [gate.session]))


@blueprint.get(ENTER)
def enter() -> ResponseReturnValue:
    """Exchange the ticket for a cookie, and redirect to the app."""
    if request.method == "HEAD":
        # A link preview, such as a chat program's, must not use up the ticket.
        raise MethodNotAllowed(["GET"])
    target = local_path(request.args.get("next"))
    try:
        entered = services().gate.enter(
            label_of_request(), request.args.get("ticket", ""), cookies()
        )
    except Unauthorized:
        gate = find_status()
        if gate is None or not gate.inside:
            raise
        # A repeated link, in a browser that already has a cookie.
        services().gate.restore_route(gate)
        return redirect_to(target or gate.app.path)
    response = redirect_to(target or entered.path)
    _clear(response, entered.mark)
    if entered.cookie is not None:
        _set_cookie(response, cookie_name(), entered.cookie, "/")
    return response


def _clear(response: Response, mark: str) -> None:
    """Make the browser clear the data that an earlier app at this origin has stored.

    Once per assignment of the origin, whose secret mark is stored in a cookie. Cookies are not
    cleared, since that would include those of the host's other ports.
    """
    name = services().settings.web.seen_cookie(label_of_request())
    if mark and mark not in request.cookies.getlist(name):
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
        _set_cookie(response, name, mark, ENTER, max_age=MARK_SECONDS)


def _set_cookie(
    response: Response, name: str, value: str, path: str, max_age: int | None = None
) -> None:
    secure = services().settings.web.secure
    response.set_cookie(
        name, value, max_age, path=path, secure=secure, httponly=True, samesite="Lax"
    )


@blueprint.get("/.slipway/status")
def status() -> ResponseReturnValue:
    """The progress of the app, polled by the waiting page's script."""
    gate = find_status()
    if gate is None:
        raise Unauthorized("Open the app again from the portal.")
    services().gate.restore_route(gate)
    now = _progress(gate)
    return jsonify(
        step=now.step,
        message=now.message,
        advice=now.advice,
        log=now.log,
        waited=_waited(now),
        session=gate.session.name if gate.inside else "",
    )


def _waited(now: Progress) -> int | None:
    """Seconds since this step began; None if unknown."""
    if now.since is None:
        return None
    return max(int((services().clock() - now.since).total_seconds()), 0)


@blueprint.route("/", defaults={"path": ""}, methods=ANY)
@blueprint.route("/<anything:path>", methods=ANY)
def wait(path: str) -> ResponseReturnValue:
    """Respond while the app cannot, and redirect browsers without a valid cookie to the portal."""
    if path.startswith(".slipway/"):
        raise NotFound("There is nothing here.")
    gate = find_status()
    if gate is None:
        if not _wants_page():
            raise Unauthorized("Open the app from the portal.")
        return redirect(_again(), 303)
    services().gate.restore_route(gate)
    if not _wants_page():
        return _not_yet(_progress(gate))
    now = _progress(gate)
    page = render_template(
        "wait.html" if gate.inside else "wait_public.html",
        gate=gate,
        now=now,
        waited=_waited(now),
        again=_again(),
        portal=portal_url(),
    )
    return make_response(page)


def _wants_page() -> bool:
    # A frame or script of another origin must not be redirected through a login.
    destination = request.headers.get("Sec-Fetch-Dest", "document")
    html = "text/html" in request.headers.get("Accept", "")
    return request.method in ("GET", "HEAD") and html and destination == "document"


def _again() -> str:
    return f"{portal_url()}/open/{label_of_request()}?{next_query(here())}"


def _not_yet(now: Progress) -> Response:
    # Not a 5xx: the app's state does not permit the request yet, but nothing has failed.
    response = errors.problem(409, "Not ready yet", now.message)
    response.headers["Retry-After"] = "1"
    return response


def _on_portal_error(error: PortalError) -> Response:
    return _refusal(error.status, error.title, error.text)


def _on_http_error(error: HTTPException) -> Response:
    return _refusal(error.code or 500, error.name, error.description or error.name)


def _refusal(status: int, title: str, text: str) -> Response:
    if not _wants_page():
        return errors.problem(status, title, text)
    again = f"{portal_url()}/open/{label_of_request()}"
    page = render_template(
        "gate_error.html",
        title=title,
        text=text,
        again=again,
        portal=portal_url(),
        reference=observed.reference() if status >= 500 else "",
    )
    return make_response(page, status)
