"""A session's log: its page, its text in pieces, and the whole log as a file."""

from __future__ import annotations

from functools import partial

from flask import render_template, request
from flask.typing import ResponseReturnValue

from portal.core.jobs.output import Reading
from portal.core.session.session import OVER, Session
from portal.web.context import person, services
from portal.web.http.downloads import send_download
from portal.web.log_response import LogTab, piece_response, requested_end, requested_offset
from portal.web.log_text import (
    PIECE,
    TAIL,
    Piece,
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
    return render_template(
        "log.html",
        row=row,
        person=person(),
        app=app,
        part=f"app={app}" if app else "",
        tabs=_tabs(row),
        reading=Reading(session.log_read_by or "", session.log_read) if session.log_read else None,
    )


def _app(session: Session) -> str:
    """The app whose lines are requested; "" for the whole log."""
    name = request.args.get("app", "")
    return services().session_logs.app(person(), session.id, name) if name else ""


def _tabs(row: SessionView) -> list[LogTab]:
    """The tabs for the whole log and each app that may have written to it; [] without apps.

    While the session runs, only opened apps have tabs.
    """
    servers = [app for app in row.offered if not app.shares]
    if row.session.state not in OVER:
        opened = {app.app for app in services().apps.opened(row.session.id)}
        servers = [app for app in servers if app.name in opened]
    tabs = [LogTab(app.title, f"app={app.name}") for app in servers]
    return [LogTab("Session", ""), *tabs] if tabs else []


@blueprint.get("/sessions/<session_id>/log/text")
def log_text(session_id: str) -> ResponseReturnValue:
    """A piece of the log, its offset and that of the next piece, both in bytes.

    It begins at `offset` or ends at `before`; without either, it is the end of the log.
    """
    session = services().sessions.get(person(), session_id)
    app = _app(session)
    return piece_response(
        lambda: _piece_of(session, app) if app else _piece(session), session.state in OVER
    )


def _piece(session: Session) -> Piece:
    """The requested piece of the whole log."""
    logs, offset = services().session_logs, requested_offset()
    if offset is not None:
        data = logs.read(person(), session.id, offset, PIECE)
    else:
        end = _end(session)
        start = max(end - TAIL, 0)
        data = logs.read(person(), session.id, start, max(end - start, 0))
        data, offset = whole_lines(data, start)
    text, following = decode(data, offset)
    return Piece(text, offset, following)


def _piece_of(session: Session, app: str) -> Piece:
    """The requested piece of an app's lines."""
    read = partial(services().session_logs.read, person(), session.id)
    offset = requested_offset()
    if offset is None:
        data, offset, following = app_tail(read, app, _end(session))
    else:
        data, following = app_piece(read, app, offset)
    return Piece(data.decode(errors="replace"), offset, following)


def _end(session: Session) -> int:
    """The end offset of the requested piece."""
    before = requested_end()
    return services().session_logs.size(person(), session.id) if before is None else before


@blueprint.get("/sessions/<session_id>/log/download")
def log_download(session_id: str) -> ResponseReturnValue:
    """The whole log as it is now, as a file; streamed."""
    session = services().sessions.get(person(), session_id)
    app = _app(session)
    size = services().session_logs.size(person(), session_id)
    read = partial(services().session_logs.read, person(), session_id)
    name = f"{session.name}-{session.id[:8]}{'-' + app if app else ''}.log"
    if app:
        return send_download(person().name, name, stream_app(read, app, size))
    return send_download(person().name, name, stream(read, size), size)
