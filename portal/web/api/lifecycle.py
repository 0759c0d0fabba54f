"""Extending, keeping and releasing sessions over the REST API."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from portal.web.api import guarded
from portal.web.api.models.base import REQUEST
from portal.web.api.models.sessions import SessionOut
from portal.web.api.operation import operation
from portal.web.api.session_answers import session_answer
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing

blueprint = guarded("tending")


class ExtendRequest(BaseModel):
    """By how many minutes; without a number, the site's usual extension."""

    model_config = REQUEST

    minutes: Annotated[int, Field(ge=1, le=525_600)] | None = None


@blueprint.post("/sessions/<session_id>/extend")
@operation("Extend a running session", SessionOut, body=ExtendRequest, body_required=False)
def extend(session_id: str) -> SessionOut:
    """Extend a running session, up to what its owner could have asked for."""
    minutes = read_model(ExtendRequest, optional=True).minutes
    return session_answer(services().lifecycle.extend(person(), session_id, minutes))


@blueprint.post("/sessions/<session_id>/keep")
@operation("Keep an unused session; counts as use", SessionOut)
def keep(session_id: str) -> SessionOut:
    """Keep a session that nobody uses from being ended."""
    read_nothing()
    return session_answer(services().lifecycle.keep_alive(person(), session_id))


@blueprint.post("/sessions/<session_id>/release")
@operation("Release a session that its owner holds; idempotent", SessionOut)
def release(session_id: str) -> SessionOut:
    """Release one's own hold; a session that is not held stays as it is."""
    read_nothing()
    return session_answer(services().lifecycle.release(person(), session_id))
