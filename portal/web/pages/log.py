"""A session's log: its page, and its text in pieces."""

from __future__ import annotations

from flask import render_template, request
from flask.typing import ResponseReturnValue

from portal.core.session import OVER
from portal.errors import Unavailable
from portal.web.context import person, services
from portal.web.logtext import decode
from portal.web.pages.blueprint import blueprint
from portal.web.show import rows_for


@blueprint.get("/sessions/<session_id>/log")
def log(session_id: str) -> ResponseReturnValue:
    """The log's page; its text comes in pieces."""
    session = services().sessions.visible(person(), session_id)
    row = rows_for(person(), [session])[0]
    return render_template("log.html", row=row, person=person())


@blueprint.get("/sessions/<session_id>/log/text")
def log_text(session_id: str) -> ResponseReturnValue:
    """A piece of the log, and where to read on."""
    offset = max(request.args.get("offset", 0, type=int), 0)
    session = services().sessions.visible(person(), session_id)
    try:
        data = services().sessions.read_log(person(), session_id, offset)
    except Unavailable as error:
        return error.text, 503, {"Content-Type": "text/plain; charset=utf-8"}
    text, following = decode(data, offset)
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "X-Next-Offset": str(following),
        "X-Session-Over": "yes" if session.state in OVER else "no",
    }
    return text, 200, headers
