"""The gate at an app's own origin: tickets become cookies, and whoever waits is told for what.

HAProxy sends here what its map does not let through. This application knows no login, no session
cookie and no forms: nothing at an app's origin can act on the portal.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
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
from werkzeug.exceptions import HTTPException

from portal.access import Gate
from portal.core.access import AppState
from portal.core.reasons import explain
from portal.core.session import OVER, State
from portal.errors import NotFound, PortalError, Unauthorized
from portal.services import Services
from portal.web import errors
from portal.web.context import EXTENSION, services
from portal.web.paths import here, local_path, next_query
from portal.web.security import harden

blueprint = Blueprint("gate", __name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' "
    "data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
MOST_COOKIES = 8
"""So many of one name are looked at."""
ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def build(services: Services, templates: str, static: Path, max_body: int) -> Flask:
    """Make the application that answers at all apps' origins."""
    app = Flask(
        "portal.gate",
        template_folder=templates,
        static_folder=str(static),
        static_url_path="/.slipway/static",
    )
    app.config["MAX_CONTENT_LENGTH"] = max_body
    app.extensions[EXTENSION] = services
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
    """What the waiting page shows: one of queued, starting, opening, ready, failed, over."""

    step: str
    message: str
    advice: str = ""
    log: str = ""


def progress(gate: Gate) -> Progress:
    """Put into words how far a session and its app have come."""
    session = gate.session
    if session.state in OVER or session.state is State.ENDING:
        return Progress("over", session.end_text or "The session is over.")
    if session.state in (State.SUBMITTING, State.PENDING):
        reason = explain(session.pending_reason)
        return Progress("queued", reason.text, reason.advice)
    if session.state is State.STARTING:
        return Progress("starting", "The container is starting.")
    if gate.state is AppState.READY:
        return Progress("ready", "Here it comes.")
    if gate.state in (AppState.FAILED, AppState.STOPPED):
        text = gate.message or f"{gate.app.title} stopped."
        return Progress("failed", text, log=gate.log)
    return Progress("opening", f"{gate.app.title} is starting.")


def _label() -> str:
    # HAProxy lets no other name through than an app's own; without it the label is nobody's.
    return services().settings.web.origins.label_at(request.host) or ""


def _cookie_name() -> str:
    return services().settings.web.app_cookie(_label())


def _gate() -> Gate | None:
    # Another origin may have planted cookies of this name: any good one counts.
    for cookie in request.cookies.getlist(_cookie_name())[:MOST_COOKIES] or [""]:
        with suppress(NotFound):
            return services().access.gate(_label(), cookie)
    return None


@blueprint.get("/.slipway/enter")
def enter() -> ResponseReturnValue:
    """Exchange the ticket for the cookie, and go on to the app."""
    web = services().settings.web
    target = local_path(request.args.get("next"))
    earlier = _gate()
    try:
        cookie, path = services().access.enter(_label(), request.args.get("ticket", ""))
    except Unauthorized:
        if earlier is None:
            raise
        # The same link again, in a browser that is inside already.
        return redirect(target or earlier.app.path, 303)
    response = make_response(redirect(target or path, 303))
    if web.apps == "ports" and not (earlier and earlier.inside):
        # What the port's last app left in this browser. Not cookies: those of this host's other
        # ports would go with them.
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
    response.set_cookie(
        _cookie_name(),
        cookie,
        httponly=True,
        samesite="Lax",
        secure=web.secure,
        path="/",
    )
    return response


@blueprint.get("/.slipway/status")
def status() -> ResponseReturnValue:
    """How far the app has come, for the waiting page."""
    gate = _gate()
    if gate is None:
        raise Unauthorized("Open the app again from the portal.")
    now = progress(gate)
    return jsonify(
        step=now.step,
        message=now.message,
        advice=now.advice,
        log=now.log,
        session=gate.session.name,
    )


@blueprint.route("/", defaults={"path": ""}, methods=ANY)
@blueprint.route("/<path:path>", methods=ANY)
def wait(path: str) -> ResponseReturnValue:
    """Answer for the app while it cannot, or send strangers to the portal."""
    if path.startswith(".slipway/"):
        raise NotFound("There is nothing here.")
    gate = _gate()
    if gate is None:
        if not _wants_page():
            raise Unauthorized("Open the app from the portal.")
        return redirect(_again(), 303)
    if not _wants_page():
        return _not_yet(progress(gate))
    return make_response(
        render_template(
            "wait.html", gate=gate, now=progress(gate), again=_again(), portal=_portal()
        )
    )


def _wants_page() -> bool:
    # A frame or a script of another origin must not be led through a login.
    destination = request.headers.get("Sec-Fetch-Dest", "document")
    html = "text/html" in request.headers.get("Accept", "")
    return request.method in ("GET", "HEAD") and html and destination == "document"


def _portal() -> str:
    return services().settings.web.public_url.rstrip("/")


def _again() -> str:
    return f"{_portal()}/open/{_label()}?{next_query(here())}"


def _not_yet(now: Progress) -> Response:
    # Nothing is broken, so no 5xx; the request is fine, only the app's state is in its way.
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
    again = f"{_portal()}/open/{_label()}"
    page = render_template("gate_error.html", title=title, text=text, again=again, portal=_portal())
    return make_response(page, status)
