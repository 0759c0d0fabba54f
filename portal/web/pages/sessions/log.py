"""A session's log: its page, its text in pieces, and the whole log as a file."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.apps.catalog import AppSpec
from portal.core.session.session import OVER, Session
from portal.errors import Conflict, Unavailable
from portal.web.context import person, services
from portal.web.log_text import (
    PIECE,
    TAIL,
    app_piece,
    app_tail,
    decode,
    stream,
    stream_app,
    whole_lines,
)
from portal.web.pages.blueprint import blueprint
from portal.web.pages.sessions.rows import SessionView, session_views


@blueprint.get("/sessions/<session_id>/log")
def log(session_id: str) -> ResponseReturnValue:
    """The page; a script loads the text in pieces."""
    session = services().sessions.get(person(), session_id)
    row = session_views(person(), [session])[0]
    app = _app(session)
    return render_template("log.html", row=row, person=person(), app=app, tabs=_tabs(row))


def _app(session: Session) -> str:
    """The app whose lines are wanted; "" for the whole log."""
    wanted = request.args.get("app", "")
    return services().session_logs.app(person(), session.id, wanted) if wanted else ""


def _tabs(row: SessionView) -> list[AppSpec]:
    """The apps that may have written something: while the session runs, the opened ones."""
    servers = [app for app in row.offered if not app.shares]
    if row.session.state in OVER:
        return servers
    opened = {app.app for app in services().apps.opened(row.session.id)}
    return [app for app in servers if app.name in opened]


@blueprint.get("/sessions/<session_id>/log/text")
def log_text(session_id: str) -> ResponseReturnValue:
    """A piece of the log, its offset and that of the next piece, both in bytes.

    It begins at `offset` or ends at `before`; without either, it is the end of the log.
    """
    session = services().sessions.get(person(), session_id)
    app = _app(session)
    try:
        text, offset, following = _piece_of(session, app) if app else _piece(session)
    except (Conflict, Unavailable) as error:
        return error.text, error.status, {"Content-Type": "text/plain; charset=utf-8"}
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "X-Offset": str(offset),
        "X-Next-Offset": str(following),
        "X-Session-Over": "yes" if session.state in OVER else "no",
    }
    return text, 200, headers


def _piece(session: Session) -> tuple[str, int, int]:
    """The text, its offset, and that of the next piece."""
    logs, offset = services().session_logs, request.args.get("offset", type=int)
    if offset is not None:
        offset = max(offset, 0)
        data = logs.read(person(), session.id, offset, PIECE)
    else:
        end = _end(session)
        start = max(end - TAIL, 0)
        data = logs.read(person(), session.id, start, max(end - start, 0))
        data, offset = whole_lines(data, start)
    text, following = decode(data, offset)
    return text, offset, following


def _piece_of(session: Session, app: str) -> tuple[str, int, int]:
    """The same for the lines of an app."""
    read = partial(services().session_logs.read, person(), session.id)
    offset = request.args.get("offset", type=int)
    if offset is None:
        data, offset, following = app_tail(read, app, _end(session))
    else:
        offset = max(offset, 0)
        data, following = app_piece(read, app, offset)
    return data.decode(errors="replace"), offset, following


def _end(session: Session) -> int:
    """Where the wanted text ends."""
    before = request.args.get("before", type=int)
    return services().session_logs.size(person(), session.id) if before is None else max(before, 0)


@blueprint.get("/sessions/<session_id>/log/download")
def log_download(session_id: str) -> ResponseReturnValue:
    """The whole log as it is now, as a file; streamed."""
    session = services().sessions.get(person(), session_id)
    logs, app = services().session_logs, _app(session)
    size = logs.size(person(), session_id)
    if app:
        pieces = stream_app(partial(logs.read, person(), session_id), app, size)
        response = Response(pieces, content_type="text/plain; charset=utf-8")
    else:
        pieces = stream(logs, person(), session_id, size)
        response = Response(pieces, content_type="text/plain; charset=utf-8")
        response.content_length = size
    name = f"{session.name}-{session.id[:8]}{'-' + app if app else ''}.log"
    disposition = f'attachment; filename="{name}"'
    if not name.isascii():  # RFC 6266: an ASCII name for clients that support no other
        plain = f"{session.id[:8]}.log"
        disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    response.headers["Content-Disposition"] = disposition
    return response
