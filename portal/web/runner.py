"""What runners report from inside their jobs; each proves itself with its session's token."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from pydantic import BaseModel, Field

from portal.core.apps.access import AppState
from portal.core.apps.catalog import AppName
from portal.core.auth.person import hash_secret
from portal.core.session.session import Session
from portal.core.validation import STRICT
from portal.errors import NotFound
from portal.services.session.runner_calls import ReadyMessage, Usage
from portal.web.auth.bearer import bearer
from portal.web.body import read_model
from portal.web.context import services
from portal.web.rate_limit import Rate, RateLimiter
from portal.web.security import FROM_RUNNERS, csrf

blueprint = Blueprint("runner", __name__, url_prefix="/runner/v1/sessions/<session_id>")
csrf.exempt(blueprint)

NEWS = Rate(per_second=1.0, at_once=3)
"""An honest runner reports every ten seconds, and what it could not deliver once more."""
APP_NEWS = Rate(per_second=2.0, at_once=40)
"""Of all apps of a session together, which may come up in the same moment."""
pace = RateLimiter()

Count = Annotated[int, Field(ge=0, le=2**53)]
"""Bytes and the like: as far as JSON's readers count exactly."""
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class Ready(BaseModel):
    """The gateway listens; `csr` is its signing request."""

    model_config = STRICT

    job_id: Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]
    node: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$")]
    port: Annotated[int, Field(ge=1, le=65535)]
    csr: Annotated[str, Field(max_length=16_384)]
    apps: Annotated[list[AppName], Field(max_length=256)] = []
    """The apps that the image can run."""


class Heartbeat(BaseModel):
    """What the job uses; seconds and bytes, of a GPU bytes and percent."""

    model_config = STRICT

    cpu_seconds: Seconds
    memory_bytes: Count
    memory_limit: Count | None = None
    oom_kills: Count = 0
    apps: Annotated[dict[AppName, AppState], Field(max_length=64)] = {}
    busy: Annotated[tuple[AppName, ...], Field(max_length=64)] = ()
    gpu_memory_bytes: Count | None = None
    gpu_percent: Percent | None = None
    gpu_kills: Annotated[int, Field(ge=0, lt=2**31)] = 0


class AppReport(BaseModel):
    """What became of one app; the log is its last lines."""

    model_config = STRICT

    state: Literal["ready", "failed", "stopped"]
    message: Annotated[str, Field(max_length=2000)] = ""
    log: Annotated[str, Field(max_length=65_536)] = ""
    details: Annotated[str, Field(max_length=4096)] | None = None
    """What the app wants its owner to be shown; only with "ready"."""


@blueprint.before_request
def only_from_the_cluster() -> None:
    """Refuse call-backs that did not come through HAProxy's side for runners."""
    if FROM_RUNNERS not in request.environ:
        raise NotFound("There is nothing here.")


def _session(session_id: str, rate: Rate = NEWS) -> Session:
    token = bearer()
    # By the token as well: whoever does not know it cannot use up what its holder may send.
    pace.take(f"{request.endpoint} {session_id} {hash_secret(token)}", rate)
    return services().runner_calls.authenticate(session_id, token)


@blueprint.post("/ready")
def ready(session_id: str) -> ResponseReturnValue:
    """The gateway has a port: certify it, and say which apps somebody waits for."""
    session = _session(session_id)
    body = read_model(Ready)
    message = ReadyMessage(body.job_id, body.node, body.port, body.csr, tuple(body.apps))
    answer = services().runner_calls.mark_ready(session, message)
    return {"certificate": answer.certificate, "start": answer.start}


@blueprint.post("/usage")
def usage(session_id: str) -> ResponseReturnValue:
    """Take in a heartbeat."""
    session = _session(session_id)
    body = read_model(Heartbeat)
    beat = Usage(
        body.cpu_seconds,
        body.memory_bytes,
        body.oom_kills,
        body.apps,
        body.busy,
        body.gpu_memory_bytes,
        body.gpu_percent,
        body.gpu_kills,
    )
    services().runner_calls.record_usage(session, beat)
    return {}


@blueprint.post("/apps/<app>")
def app_report(session_id: str, app: str) -> ResponseReturnValue:
    """Take in what became of an app."""
    session = _session(session_id, APP_NEWS)
    body = read_model(AppReport)
    state = AppState(body.state)
    services().app_reports.note_app(session, app, state, body.message, body.log, body.details)
    return {}
