"""Folders that outlive sessions, over the REST API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from flask.typing import ResponseReturnValue
from pydantic import BaseModel, Field

from portal.core.launch.mounts import NAME
from portal.core.validation import STRICT
from portal.errors import FieldError, InvalidRequest
from portal.web.api import guarded
from portal.web.body import read_model
from portal.web.context import person, services

blueprint = guarded("folders")


class FolderRequest(BaseModel):
    """A storage folder to be made."""

    model_config = STRICT

    name: Annotated[str, Field(json_schema_extra={"pattern": f"^{NAME}$"})]


@blueprint.get("/folders")
def list_folders() -> ResponseReturnValue:
    """What can be mounted into a session: the home directory and one's storage folders."""
    return {"folders": [asdict(folder) for folder in services().storage.list(person())]}


@blueprint.post("/folders")
def make_folder() -> ResponseReturnValue:
    """Make a storage folder."""
    name = read_model(FolderRequest).name
    try:
        return asdict(services().storage.make(person(), name)), 201
    except InvalidRequest as error:  # a form calls the field folder, here it is name
        raise InvalidRequest([FieldError("name", e.message) for e in error.errors]) from None
