"""Call-backs of the runners in the jobs, authenticated by their sessions' tokens."""

from __future__ import annotations

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from portal.core.apps.access import AppState
from portal.core.auth.person import hash_secret
from portal.core.session.session import Session
from portal.core.session_job.adoption import AdoptMessage
from portal.core.session_job.runner_protocol import (
    AppReport,
    Heartbeat,
    ProgressMessage,
    ReadyMessage,
    RenewalMessage,
)
from portal.errors import NotFound, SessionUnknown, Unavailable
from portal.web.auth.bearer import bearer
from portal.web.caller import note_caller
from portal.web.context import services
from portal.web.errors import on_portal_error
from portal.web.http.body import read_model
from portal.web.http.rate_limit import Rate, RateLimiter
from portal.web.security import FOR_RUNNERS, FRONTEND, csrf

blueprint = Blueprint("runner", __name__, url_prefix="/runner/v1/sessions/<session_id>")
csrf.exempt(blueprint)

NEWS = Rate(per_second=1.0, at_once=3)
"""A runner reports its use every `sessions.heartbeat_seconds`, or more rarely, and at once after
programs were killed; it repeats reports that were not delivered."""
VERSION = "Slipway-Runner"
"""Header of runners that tell unknown sessions from ended ones (node/runner/wire.py)."""
APP_NEWS = Rate(per_second=2.0, at_once=40)
"""For all apps of a session together, which may become ready at the same moment."""
pace = RateLimiter()


@blueprint.before_request
def only_from_the_cluster() -> None:
    """Reject calls that did not come through HAProxy's frontend for runners."""
    if request.environ.get(FRONTEND) != FOR_RUNNERS:
        raise NotFound("There is nothing here.")


def _session(session_id: str, rate: Rate = NEWS) -> Session:
    session = services().runner_calls.authenticate(session_id, _token(session_id, rate))
    note_caller(f"runners of {session.owner}")
    return session


def _token(session_id: str, rate: Rate) -> str:
    token = bearer()
    # Counted per token as well, so that others cannot exhaust its holder's limit.
    pace.take(f"{request.endpoint} {session_id} {hash_secret(token)}", rate)
    return token


@blueprint.errorhandler(SessionUnknown)
def unknown(error: SessionUnknown) -> ResponseReturnValue:
    """Respond 404, or 503 to runners of earlier releases, which end their sessions on 404."""
    if VERSION in request.headers:
        return on_portal_error(error)
    return on_portal_error(Unavailable(error.text))


@blueprint.post("/adopt")
def adopt(session_id: str) -> ResponseReturnValue:
    """Adopt a session that is missing from the database."""
    token = _token(session_id, NEWS)
    services().adoption.claim(session_id, token, read_model(AdoptMessage))
    return {}


@blueprint.post("/ready")
def ready(session_id: str) -> ResponseReturnValue:
    """The gateway is listening: issue its certificate, and return the apps to start."""
    session = _session(session_id)
    ready_reply = services().runner_calls.mark_ready(session, read_model(ReadyMessage))
    return {"certificate": ready_reply.certificate, "start": ready_reply.start}


@blueprint.post("/progress")
def progress(session_id: str) -> ResponseReturnValue:
    """Record the job's progress before its container starts."""
    session = _session(session_id)
    services().runner_calls.note_progress(session, read_model(ProgressMessage))
    return {}


@blueprint.post("/usage")
def usage(session_id: str) -> ResponseReturnValue:
    """Record a heartbeat; the answer is shown in the session's terminals."""
    session = _session(session_id)
    return dict(services().runner_calls.record_usage(session, read_model(Heartbeat)))


@blueprint.post("/authorities")
def renew(session_id: str) -> ResponseReturnValue:
    """Issue a new certificate for the gateway by the current authorities; return both."""
    session = _session(session_id)
    return dict(services().runner_calls.renew(session, read_model(RenewalMessage)))


@blueprint.post("/apps/<app>")
def app_report(session_id: str, app: str) -> ResponseReturnValue:
    """Record the state of an app."""
    session = _session(session_id, APP_NEWS)
    body = read_model(AppReport)
    state = AppState(body.state)
    services().app_reports.note_app(session, app, state, body.message, body.log, body.details)
    return {}
