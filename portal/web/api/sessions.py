"""Sessions and their apps over the REST API."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from flask.typing import ResponseReturnValue
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from portal.core.apps.access import AppOptions
from portal.core.session.query import MAX_AT_ONCE, ListQuery
from portal.core.session.session import Session
from portal.core.validation import STRICT, Matching, wrong
from portal.services.apps.apps import MAX_ANSWER
from portal.web.api import guarded
from portal.web.api.serialize import all_in_full, in_full
from portal.web.body import read_json, read_model, read_nothing, read_query
from portal.web.context import person, services
from portal.web.gate.links import enter_url, open_url
from portal.web.idempotency import key_of_request
from portal.web.log_text import decode

blueprint = guarded("sessions")

SessionId = Annotated[str, Matching("[0-9A-Za-z._-]{1,64}", "this is no id of a session")]
_QUERY = ConfigDict(extra="forbid", frozen=True)


class LogQuery(BaseModel):
    """From which byte on."""

    model_config = _QUERY

    offset: Annotated[int, Field(ge=0, lt=2**63)] = 0


def _some(ids: Any) -> Any:
    # Before any of them is looked at.
    if isinstance(ids, list) and not 0 < len(ids) <= MAX_AT_ONCE:
        raise wrong(f"name 1 to {MAX_AT_ONCE} sessions")
    return ids


class EndRequest(BaseModel):
    """Which sessions to end."""

    model_config = STRICT

    ids: Annotated[
        list[SessionId],
        Field(min_length=1, max_length=MAX_AT_ONCE),
        BeforeValidator(_some),
    ]


class AppRequest(BaseModel):
    """How to open an app; what is not named stays as it is."""

    model_config = STRICT

    public: bool | None = None
    """Whether everybody who knows the address may use it."""
    preferred_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """The port to try first."""
    asked: Annotated[str, Field(max_length=MAX_ANSWER)] | None = None
    """The answer to what the app asks for; another one than before starts it anew."""

    def wish(self) -> AppOptions:
        """The same as the portal's inside knows it."""
        return AppOptions(self.public, self.preferred_port, self.asked)


@blueprint.get("/sessions")
def list_sessions() -> ResponseReturnValue:
    """Sessions, newest first unless sorted; an administrator sees everybody's."""
    page = services().sessions.query(person(), read_query(ListQuery))
    found = all_in_full(page.sessions)
    for session in found:
        if session["end"]:  # kilobytes each, and whoever wants one asks for the session
            del session["end"]["log"]
    return {"sessions": found, "next_cursor": page.following}


@blueprint.post("/sessions")
def launch() -> ResponseReturnValue:
    """Launch sessions, all or none; the same Idempotency-Key again answers with the same ones."""
    wanted = services().sessions.parse(read_json())
    return launched(services().sessions.launch_all(person(), wanted, key_of_request()))


def launched(made: list[Session]) -> ResponseReturnValue:
    """The answer to every kind of launch."""
    return {"sessions": all_in_full(made)}, 201


@blueprint.get("/sessions/<session_id>")
def show(session_id: str) -> ResponseReturnValue:
    """One session."""
    return in_full(services().sessions.get(person(), session_id))


@blueprint.delete("/sessions/<session_id>")
def stop(session_id: str) -> ResponseReturnValue:
    """End a session; one that is over stays as it is."""
    read_nothing()
    return in_full(services().sessions.stop(person(), session_id)), 202


@blueprint.post("/sessions/end")
def stop_all() -> ResponseReturnValue:
    """End many sessions; when one of them is not there or not yours, none is touched."""
    ended = services().sessions.stop_all(person(), read_model(EndRequest).ids)
    return {"sessions": all_in_full(ended)}, 202


@blueprint.get("/sessions/<session_id>/log")
def log(session_id: str) -> ResponseReturnValue:
    """Part of the log; `next_offset` is where to read on."""
    offset = read_query(LogQuery).offset
    text, following = decode(services().sessions.read_log(person(), session_id, offset), offset)
    return {"log": text, "offset": offset, "next_offset": following}


@blueprint.post("/sessions/<session_id>/apps/<app>")
def open_app(session_id: str, app: str) -> ResponseReturnValue:
    """Start an app if need be; the address lets one browser in, once, within a minute."""
    wanted = read_model(AppRequest, optional=True).wish()
    link = services().apps.open_app(person(), session_id, app, wanted)
    url = enter_url(link)
    return {
        "url": url,
        "port": _port(url),
        "public": link.public,
        "public_url": open_url(link) if link.public else None,
        "state": link.state,
        "notice": link.notice,
    }


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


@blueprint.delete("/sessions/<session_id>/apps/<app>")
def close_app(session_id: str, app: str) -> ResponseReturnValue:
    """Shut every way into the app; the app itself goes on."""
    read_nothing()
    services().apps.close_app(person(), session_id, app)
    return "", 204
