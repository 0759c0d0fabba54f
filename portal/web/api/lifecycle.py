"""More time, an end to a hold, and keeping what nobody uses, over the REST API."""

from __future__ import annotations

from typing import Annotated

from flask.typing import ResponseReturnValue
from pydantic import BaseModel, Field

from portal.core.validation import STRICT
from portal.web.api import guarded
from portal.web.api.serialize import in_full
from portal.web.body import read_model, read_nothing
from portal.web.context import person, services

blueprint = guarded("tending")


class ExtendRequest(BaseModel):
    """How many minutes more; without a number, what the site usually gives."""

    model_config = STRICT

    minutes: Annotated[int, Field(ge=1, le=525_600)] | None = None


@blueprint.post("/sessions/<session_id>/extend")
def extend(session_id: str) -> ResponseReturnValue:
    """Give a running session more time, up to what its owner could have asked for."""
    minutes = read_model(ExtendRequest, optional=True).minutes
    return in_full(services().lifecycle.extend(person(), session_id, minutes))


@blueprint.post("/sessions/<session_id>/keep")
def keep(session_id: str) -> ResponseReturnValue:
    """Let a session that nobody uses go on."""
    read_nothing()
    return in_full(services().lifecycle.keep_alive(person(), session_id))


@blueprint.post("/sessions/<session_id>/release")
def release(session_id: str) -> ResponseReturnValue:
    """Take one's own hold away; a session that is not held stays as it is."""
    read_nothing()
    return in_full(services().lifecycle.release(person(), session_id))
