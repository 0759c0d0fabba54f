"""Endpoints of the list and its scripts: extend, keep and release sessions; how they ended."""

from __future__ import annotations

from flask import redirect
from flask.typing import ResponseReturnValue

from portal.core.session.end_reasons import FINDING_OUT, unexpected
from portal.core.session.session import OVER
from portal.errors import PortalError
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint, by_htmx

_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


@blueprint.post("/sessions/<session_id>/extend")
def extend(session_id: str) -> ResponseReturnValue:
    """Extend a running session by the default time."""
    try:
        services().lifecycle.extend(person(), session_id)
    except PortalError as error:
        return _refused(error)
    return _done()


@blueprint.post("/sessions/<session_id>/keep")
def keep_unused(session_id: str) -> ResponseReturnValue:
    """Reset the idle timer of an unused session."""
    try:
        services().lifecycle.keep_alive(person(), session_id)
    except PortalError as error:
        return _refused(error)
    return _done()


@blueprint.post("/sessions/<session_id>/release")
def release(session_id: str) -> ResponseReturnValue:
    """Release the owner's own hold. Idempotent."""
    try:
        services().lifecycle.release(person(), session_id)
    except PortalError as error:
        return _refused(error)
    return _done()


def _done() -> ResponseReturnValue:
    return ("", 204) if by_htmx() else redirect("/sessions", 303)


def _refused(error: PortalError) -> ResponseReturnValue:
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
