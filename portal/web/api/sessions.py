"""Sessions and their apps over the REST API."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from portal.core.apps.access import AppOptions
from portal.core.apps.answers import MAX_ANSWER, MAX_TITLE
from portal.core.apps.catalog import AppName
from portal.core.launch.request import LaunchRequest
from portal.core.session.query import MAX_AT_ONCE, MAX_REASON, ListQuery, end_reason
from portal.core.session.session import Session
from portal.core.session_job.samples import MOST
from portal.core.validation import Matching, checked
from portal.web.api import guarded
from portal.web.api.models.apps import OpenAppOut
from portal.web.api.models.base import REQUEST, NoContent, some_of
from portal.web.api.models.history import MomentOut, TimelineOut, UseOverTimeOut, UsePointOut
from portal.web.api.models.sessions import LogOut, SessionListOut, SessionOut, SessionPageOut
from portal.web.api.operation import IDEMPOTENCY_KEY, operation
from portal.web.api.session_responses import session_response, session_responses
from portal.web.context import person, reads_together, services
from portal.web.gate.links import enter_url, open_url
from portal.web.http.body import read_json, read_model, read_nothing, read_query
from portal.web.http.idempotency import key_of_request
from portal.web.log_text import app_piece, decode

blueprint = guarded("sessions", for_services=True)

SessionId = Annotated[str, Matching("[0-9A-Za-z._-]{1,64}", "this is not a session id")]
_QUERY = ConfigDict(extra="forbid", frozen=True)


class LogQuery(BaseModel):
    """The part of the log to read: from the byte `offset` on."""

    model_config = _QUERY

    offset: Annotated[int, Field(ge=0, lt=2**63)] = 0
    app: AppName | None = None
    """Only the lines of this app, without its mark; offsets are still those of the whole log."""


class EndRequest(BaseModel):
    """The sessions to end."""

    model_config = REQUEST

    ids: Annotated[
        list[SessionId],
        Field(min_length=1, max_length=MAX_AT_ONCE),
        some_of(MAX_AT_ONCE, "sessions"),
    ]
    reason: Annotated[
        str,
        checked(end_reason),
        WithJsonSchema({"type": "string", "maxLength": MAX_REASON}),
    ] = ""
    """Why, in one line; the owners of the sessions read it in the text about the end."""


class AppRequest(BaseModel):
    """Options for opening an app; omitted ones stay unchanged."""

    model_config = REQUEST

    public: bool | None = None
    """Whether anyone who knows the address may use it."""
    preferred_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """The port to try first."""
    asked: Annotated[str, Field(max_length=MAX_ANSWER)] | None = None
    """The answer to the app's prompt; a new answer restarts the app."""
    title: Annotated[str, Field(max_length=MAX_TITLE)] | None = None
    """The title of an app that can have one; "" for its own."""

    def options(self) -> AppOptions:
        """The options as the services take them."""
        return AppOptions(self.public, self.preferred_port, self.asked, self.title)


@blueprint.get("/sessions")
@operation("List sessions, a page at a time", SessionPageOut, query=ListQuery)
@reads_together()
def list_sessions() -> SessionPageOut:
    """Sessions, by default newest first; administrators see those of all users."""
    page = services().sessions.query(person(), read_query(ListQuery))
    items = [session.for_list() for session in session_responses(page.sessions)]
    return SessionPageOut(sessions=items, next_cursor=page.following)


@blueprint.post("/sessions")
@operation(
    "Launch sessions, all or none",
    SessionListOut,
    status=201,
    body=LaunchRequest,
    header=IDEMPOTENCY_KEY,
)
def launch_sessions() -> SessionListOut:
    """Launch sessions, all or none; a repeated Idempotency-Key returns the same sessions."""
    key = key_of_request()
    plan = services().launch_checks.prepare(person(), read_json(), key)
    return launch_response(services().launcher.launch(plan))


def launch_response(created: list[Session]) -> SessionListOut:
    """The response to every kind of launch."""
    return SessionListOut(sessions=session_responses(created))


@blueprint.get("/sessions/<session_id>")
@operation("Show one session", SessionOut)
def get_session(session_id: str) -> SessionOut:
    """One session."""
    return session_response(services().sessions.get(person(), session_id))


@blueprint.delete("/sessions/<session_id>")
@operation("End a session; idempotent", SessionOut, status=202)
def end_session(session_id: str) -> SessionOut:
    """End a session; no effect on one that is over."""
    read_nothing()
    return session_response(services().sessions.stop(person(), session_id))


@blueprint.post("/sessions/end")
@operation("End many sessions, all or none", SessionListOut, status=202, body=EndRequest)
def end_sessions() -> SessionListOut:
    """End many sessions; none of them if one does not exist or belongs to another user."""
    body = read_model(EndRequest)
    ended = services().sessions.stop_all(person(), body.ids, body.reason)
    return SessionListOut(sessions=session_responses(ended))


@blueprint.get("/sessions/<session_id>/log")
@operation("Read a session's log", LogOut, query=LogQuery)
def read_session_log(session_id: str) -> LogOut:
    """Part of the log; `next_offset` is the offset of the next part."""
    query, logs = read_query(LogQuery), services().session_logs
    if query.app is None:
        text, following = decode(logs.read(person(), session_id, query.offset), query.offset)
    else:
        server = logs.app(person(), session_id, query.app)
        read = partial(logs.read, person(), session_id)
        lines, following = app_piece(read, server, query.offset)
        text = lines.decode(errors="replace")
    return LogOut(log=text, offset=query.offset, next_offset=following)


@blueprint.get("/sessions/<session_id>/usage")
@operation("Show a session's use over time", UseOverTimeOut)
def get_session_usage(session_id: str) -> UseOverTimeOut:
    """CPU, memory and GPU use since its start, in at most 300 points."""
    points = services().sessions.use_over_time(person(), session_id, MOST)
    return UseOverTimeOut(points=[UsePointOut.of(point) for point in points])


@blueprint.get("/sessions/<session_id>/timeline")
@operation("Show what happened to a session", TimelineOut)
def get_session_timeline(session_id: str) -> TimelineOut:
    """The times of its request, queueing, start, readiness, extensions and end."""
    moments = services().sessions.timeline(person(), session_id)
    return TimelineOut(moments=[MomentOut.of(moment) for moment in moments])


@blueprint.post("/sessions/<session_id>/apps/<app>")
@operation("Open an app", OpenAppOut, body=AppRequest, body_required=False)
def open_app(session_id: str, app: str) -> OpenAppOut:
    """Start an app if necessary; the address admits one browser, once, within a minute."""
    options = read_model(AppRequest, optional=True).options()
    link = services().apps.open_app(person(), session_id, app, options)
    url = enter_url(link)
    return OpenAppOut(
        url=url,
        port=_port(url),
        public=link.public,
        public_url=open_url(link) if link.public else None,
        state=link.state,
        notice=link.notice,
    )


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


@blueprint.delete("/sessions/<session_id>/apps/<app>")
@operation("Revoke all access to an app", NoContent)
def close_app(session_id: str, app: str) -> NoContent:
    """Revoke all access to an app; the app itself keeps running."""
    read_nothing()
    services().apps.close_app(person(), session_id, app)
    return NoContent()


@blueprint.post("/sessions/<session_id>/apps/<app>/stop")
@operation("Stop an app and everything that runs in it", NoContent)
def stop_app(session_id: str, app: str) -> NoContent:
    """Stop an app that has been opened; opening it starts it again."""
    read_nothing()
    services().apps.stop_app(person(), session_id, app)
    return NoContent()


@blueprint.post("/sessions/<session_id>/apps/<app>/restart")
@operation("Stop an app and start it as before", NoContent)
def restart_app(session_id: str, app: str) -> NoContent:
    """Restart an app that has been opened, with the same answer and access."""
    read_nothing()
    services().apps.restart_app(person(), session_id, app)
    return NoContent()
