"""Extending, keeping and releasing sessions over the REST API."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from portal.web.api import guarded
from portal.web.api.models.base import REQUEST
from portal.web.api.models.sessions import SessionOut
from portal.web.api.operation import operation
from portal.web.api.session_responses import session_response
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing

blueprint = guarded("lifecycle")


class ExtendRequest(BaseModel):
    """Minutes to extend by; the site's default extension if omitted."""

    model_config = REQUEST

    minutes: Annotated[int, Field(ge=1, le=525_600)] | None = None


@blueprint.post("/sessions/<session_id>/extend")
@operation("Extend a running session", SessionOut, body=ExtendRequest, body_required=False)
def extend(session_id: str) -> SessionOut:
    """Extend a running session, up to the longest limit that its owner could have requested."""
    minutes = read_model(ExtendRequest, optional=True).minutes
    return session_response(services().lifecycle.extend(person(), session_id, minutes))


@blueprint.post("/sessions/<session_id>/keep")
@operation("Keep an unused session; counts as use", SessionOut)
def keep(session_id: str) -> SessionOut:
    """Reset the idle timer of an unused session."""
    read_nothing()
    return session_response(services().lifecycle.keep_alive(person(), session_id))


@blueprint.post("/sessions/<session_id>/release")
@operation("Release a session that its owner has put on hold; idempotent", SessionOut)
def release(session_id: str) -> SessionOut:
    """Release the owner's hold; no effect on a session that is not held."""
    read_nothing()
    return session_response(services().lifecycle.release(person(), session_id))
