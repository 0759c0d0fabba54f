"""A session's log: its page, its text in pieces, and the whole log as a file."""

from __future__ import annotations

from urllib.parse import quote

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.session.session import OVER, Session
from portal.errors import Conflict, Unavailable
from portal.web.context import person, services
from portal.web.log_text import PIECE, TAIL, decode, stream, whole_lines
from portal.web.pages.blueprint import blueprint
from portal.web.pages.sessions.rows import session_views


@blueprint.get("/sessions/<session_id>/log")
def log(session_id: str) -> ResponseReturnValue:
    """The page; a script loads the text in pieces."""
    session = services().sessions.get(person(), session_id)
    row = session_views(person(), [session])[0]
    return render_template("log.html", row=row, person=person())


@blueprint.get("/sessions/<session_id>/log/text")
def log_text(session_id: str) -> ResponseReturnValue:
    """A piece of the log, its offset and that of the next piece, both in bytes.

    It begins at `offset` or ends at `before`; without either, it is the end of the log.
    """
    session = services().sessions.get(person(), session_id)
    try:
        data, offset = _piece(session)
    except (Conflict, Unavailable) as error:
        return error.text, error.status, {"Content-Type": "text/plain; charset=utf-8"}
    text, following = decode(data, offset)
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "X-Offset": str(offset),
        "X-Next-Offset": str(following),
        "X-Session-Over": "yes" if session.state in OVER else "no",
    }
    return text, 200, headers


def _piece(session: Session) -> tuple[bytes, int]:
    logs, offset = services().session_logs, request.args.get("offset", type=int)
    if offset is not None:
        offset = max(offset, 0)
        return logs.read(person(), session.id, offset, PIECE), offset
    end = request.args.get("before", type=int)
    if end is None:
        end = logs.size(person(), session.id)
    start = max(end - TAIL, 0)
    return whole_lines(logs.read(person(), session.id, start, max(end - start, 0)), start)


@blueprint.get("/sessions/<session_id>/log/download")
def log_download(session_id: str) -> ResponseReturnValue:
    """The whole log as it is now, as a file; streamed."""
    session = services().sessions.get(person(), session_id)
    size = services().session_logs.size(person(), session_id)
    pieces = stream(services().session_logs, person(), session_id, size)
    response = Response(pieces, content_type="text/plain; charset=utf-8")
    response.content_length = size
    name = f"{session.name}-{session.id[:8]}.log"
    disposition = f'attachment; filename="{name}"'
    if not name.isascii():  # RFC 6266: an ASCII name for clients that support no other
        plain = f"{session.id[:8]}.log"
        disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    response.headers["Content-Disposition"] = disposition
    return response
