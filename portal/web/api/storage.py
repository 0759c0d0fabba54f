"""Persistent folders over the REST API."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from portal.errors import FieldError, InvalidRequest
from portal.node.common.folder_name import PATTERN
from portal.web.api import guarded
from portal.web.api.models.base import REQUEST
from portal.web.api.models.site import FolderListOut, FolderOut
from portal.web.api.operation import operation
from portal.web.context import person, services
from portal.web.http.body import read_model

blueprint = guarded("folders", for_services=True)


class FolderRequest(BaseModel):
    """A storage folder to create."""

    model_config = REQUEST

    name: Annotated[str, Field(json_schema_extra={"pattern": f"^{PATTERN}$"})]


@blueprint.get("/folders")
@operation("What can be mounted", FolderListOut)
def list_folders() -> FolderListOut:
    """The folders that can be mounted: the home directory and the storage folders."""
    folders = services().storage.list(person())
    return FolderListOut(folders=[FolderOut.of(folder) for folder in folders])


@blueprint.post("/folders")
@operation("Create a storage folder", FolderOut, status=201, body=FolderRequest)
def make_storage_folder() -> FolderOut:
    """Create a storage folder."""
    name = read_model(FolderRequest).name
    try:
        return FolderOut.of(services().storage.make(person(), name))
    except InvalidRequest as error:  # forms call the field "folder"
        raise InvalidRequest([FieldError("name", e.message) for e in error.errors]) from None
