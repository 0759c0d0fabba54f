"""Extending, keeping and releasing sessions over the REST API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from portal.core.session.ended_lately import Notice
from portal.core.validation import Moment
from portal.web.api import guarded
from portal.web.api.models.base import REQUEST, NoContent
from portal.web.api.models.sessions import SessionOut
from portal.web.api.operation import operation
from portal.web.api.session_responses import session_response
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing

blueprint = guarded("lifecycle")


class ExtendRequest(BaseModel):
    """Minutes to extend by, or "max" for as long as possible; the site's default if omitted."""

    model_config = REQUEST

    minutes: Annotated[int, Field(ge=1, le=525_600)] | Literal["max"] | None = None


@blueprint.post("/sessions/<session_id>/extend")
@operation("Extend a running session", SessionOut, body=ExtendRequest, body_required=False)
def extend_session(session_id: str) -> SessionOut:
    """Extend a running session, up to the longest limit that its owner could have requested."""
    minutes = read_model(ExtendRequest, optional=True).minutes
    return session_response(services().lifecycle.extend(person(), session_id, minutes))


@blueprint.post("/sessions/<session_id>/keep")
@operation("Keep an unused session; counts as use", SessionOut)
def keep_session(session_id: str) -> SessionOut:
    """Reset the idle timer of an unused session."""
    read_nothing()
    return session_response(services().lifecycle.keep_alive(person(), session_id))


class DismissRequest(BaseModel):
    """The notice to dismiss: of the session's end, or of a process that ran out of memory."""

    model_config = REQUEST

    notice: Notice


class DismissEndsRequest(BaseModel):
    """The time up to which ends are dismissed."""

    model_config = REQUEST

    until: Moment


@blueprint.post("/sessions/<session_id>/dismiss")
@operation(
    "Dismiss a notice about a session of one's own; idempotent", SessionOut, body=DismissRequest
)
def dismiss_end(session_id: str) -> SessionOut:
    """Dismiss a notice; a later process that runs out of memory causes a new one."""
    session = services().sessions.get(person(), session_id)
    notice = read_model(DismissRequest).notice
    return session_response(services().sessions.dismiss(person(), session.id, notice))


@blueprint.post("/sessions/dismiss")
@operation(
    "Dismiss the notices of all ends up to a time; idempotent", NoContent, body=DismissEndsRequest
)
def dismiss_ends() -> NoContent:
    """Dismiss the notices of all of the caller's sessions that had ended by then."""
    services().sessions.dismiss_ends(person(), read_model(DismissEndsRequest).until)
    return NoContent()


@blueprint.post("/sessions/<session_id>/release")
@operation("Release a session that its owner has put on hold; idempotent", SessionOut)
def release_session(session_id: str) -> SessionOut:
    """Release the owner's hold; no effect on a session that is not held."""
    read_nothing()
    return session_response(services().lifecycle.release(person(), session_id))
