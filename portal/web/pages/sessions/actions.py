"""Actions of the list and its scripts: extend, keep, release and dismiss; and outcomes."""

from __future__ import annotations

from typing import Literal

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.session.end_reasons import FINDING_OUT, unexpected
from portal.core.session.ended_lately import Notice
from portal.core.session.session import OVER
from portal.core.validation import check
from portal.errors import InvalidRequest, NotFound, PortalError
from portal.web.api.lifecycle import DismissEndsRequest, ExtendRequest
from portal.web.context import person, services
from portal.web.http.paths import local_path
from portal.web.numbers import trim, whole
from portal.web.pages.blueprint import blueprint, by_htmx

_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


@blueprint.post("/sessions/<session_id>/extend")
def extend(session_id: str) -> ResponseReturnValue:
    """Extend a running session by the chosen time, else by the default; show its new end."""
    try:
        session = services().lifecycle.extend(person(), session_id, requested_minutes())
    except PortalError as error:
        return _error_response(error)
    if by_htmx():
        return render_template("_extended.html", session=session)
    back = local_path(request.form.get("back"))
    return redirect(back or f"/sessions?extended={session.id}", 303)


def requested_minutes() -> int | Literal["max"] | None:
    """The field "minutes" of the form; raises InvalidRequest."""
    text = trim(request.form.get("minutes", ""))
    data = {"minutes": whole(text)} if text else {}
    return check(ExtendRequest, data).minutes


@blueprint.post("/sessions/<session_id>/keep")
def keep_unused(session_id: str) -> ResponseReturnValue:
    """Reset the idle timer of an unused session."""
    try:
        services().lifecycle.keep_alive(person(), session_id)
    except PortalError as error:
        return _error_response(error)
    return _redirect_back()


@blueprint.post("/sessions/<session_id>/release")
def release(session_id: str) -> ResponseReturnValue:
    """Release the owner's hold. Idempotent."""
    try:
        services().lifecycle.release(person(), session_id)
    except PortalError as error:
        return _error_response(error)
    return _redirect_back()


@blueprint.post("/sessions/<session_id>/dismiss/<any(end, memory):notice>")
def dismiss(session_id: str, notice: str) -> ResponseReturnValue:
    """Dismiss the notice of a session's end, or of a process that ran out of memory."""
    services().sessions.dismiss(person(), session_id, Notice(notice))
    return _redirect_back()


@blueprint.post("/sessions/dismiss/<until>")
def dismiss_ends(until: str) -> ResponseReturnValue:
    """Dismiss the notices of all ends up to a time."""
    try:
        moment = check(DismissEndsRequest, {"until": until}).until
    except InvalidRequest:
        raise NotFound("There is nothing here.") from None
    services().sessions.dismiss_ends(person(), moment)
    return _redirect_back()


def _redirect_back() -> ResponseReturnValue:
    back = local_path(request.form.get("back")) or "/sessions"
    return ("", 204) if by_htmx() else redirect(back, 303)


def _error_response(error: PortalError) -> ResponseReturnValue:
    if not by_htmx():
        raise error
    return error.text.removeprefix("minutes: "), error.status, _TEXT


@blueprint.get("/sessions/<session_id>/outcome")
def outcome(session_id: str) -> ResponseReturnValue:
    """Whether a session is over, and whether to notify its owner."""
    session = services().sessions.get(person(), session_id)
    over = session.state in OVER
    return {
        "over": over,
        "tell": over and session.owner == person().name and unexpected(session),
        "explained": session.end_text != FINDING_OUT,
        "name": session.name,
        "text": session.end_text or "",
    }
