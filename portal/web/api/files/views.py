"""Files and folders over the REST API; their contents are at /data/files/ (docs: README.md).

A location is the name of a storage area (home, storage, shared, or the site's own) and a path below
it, percent-encoded byte by byte.
"""

from __future__ import annotations

from flask import request

from portal.web.api import PREFIX, guarded
from portal.web.api.files.models import (
    EntryOut,
    FolderUsageOut,
    FolderUseOut,
    FolderUsesOut,
    FoundOut,
    ListingOut,
    ListQuery,
    OperationListOut,
    OperationOut,
    OperationRequest,
    QuotaOut,
    RenameRequest,
    SearchQuery,
    UploadListOut,
    UploadOut,
)
from portal.web.api.models.base import NoContent
from portal.web.api.operation import operation
from portal.web.context import person, services
from portal.web.http.body import read_model, read_query
from portal.web.http.locations import location_after

blueprint = guarded("files", area="files:")


def _location() -> str:
    """The location in the address, after /files/<action>/."""
    rule = request.url_rule
    assert rule is not None  # noqa: S101  # set, since a view was called
    return location_after(f"{PREFIX}/files/{rule.rule.split('/')[4]}")


@blueprint.get("/files/list/<location:location>")
@operation("List a folder", ListingOut, query=ListQuery)
def list_folder(location: str) -> ListingOut:  # noqa: ARG001
    """A page of a folder's entries."""
    query = read_query(ListQuery).model_dump()
    return ListingOut.of(services().files.list(person(), _location(), query))


@blueprint.get("/files/entry/<location:location>")
@operation("One file or folder", EntryOut)
def get_entry(location: str) -> EntryOut:  # noqa: ARG001
    """One file or folder."""
    return EntryOut.model_validate(services().files.entry(person(), _location()))


@blueprint.get("/files/search/<location:location>")
@operation("Search below a folder, by name", FoundOut, query=SearchQuery)
def search_files(location: str) -> FoundOut:  # noqa: ARG001
    """The files and folders below a folder with a text in their names."""
    text = read_query(SearchQuery).text
    return FoundOut.model_validate(services().files.search(person(), _location(), text))


@blueprint.get("/files/usage/<location:location>")
@operation("How much is below a folder", FolderUsageOut)
def get_folder_usage(location: str) -> FolderUsageOut:  # noqa: ARG001
    """The number and size of the files below a folder, as far as counted."""
    return FolderUsageOut.model_validate(services().files.usage(person(), _location()))


@blueprint.get("/files/quota/<area>")
@operation("How much may be stored", QuotaOut)
def get_quota(area: str) -> QuotaOut:
    """Use and limit of a storage area."""
    return QuotaOut.model_validate(services().files.quota(person(), area))


@blueprint.put("/files/folder/<location:location>")
@operation("Create a folder", EntryOut, status=201)
def make_folder(location: str) -> EntryOut:  # noqa: ARG001
    """Create a folder."""
    return EntryOut.model_validate(services().files.make_folder(person(), _location()))


@blueprint.post("/files/rename/<location:location>")
@operation("Rename a file or folder", EntryOut, body=RenameRequest)
def rename_file(location: str) -> EntryOut:  # noqa: ARG001
    """Give a file or folder another name."""
    name = read_model(RenameRequest).name
    return EntryOut.model_validate(services().shares.rename(person(), _location(), name))


@blueprint.get("/files/uses/<location:location>")
@operation("Who uses a storage folder", FolderUsesOut)
def get_uses(location: str) -> FolderUsesOut:  # noqa: ARG001
    """Whom a storage folder is shared with, and the live sessions that have it mounted."""
    use = services().shares.uses(person(), _location())
    return FolderUsesOut(use=FolderUseOut.of(use) if use else None)


@blueprint.get("/files/operations")
@operation("Your operations of the last hour", OperationListOut)
def list_operations() -> OperationListOut:
    """Operations that run, and those of the last hour."""
    operations = services().files.operations(person())
    return OperationListOut(operations=[OperationOut.model_validate(item) for item in operations])


@blueprint.post("/files/operations")
@operation(
    "Copy, move, delete, unpack or fetch, or change permissions",
    OperationOut,
    status=202,
    body=OperationRequest,
)
def start_operation() -> OperationOut:
    """Start an operation; it may have ended when this returns."""
    order = read_model(OperationRequest).model_dump(exclude_none=True)
    end_shares = order.pop("end_shares")
    operation = services().shares.operate(person(), order, end_shares=end_shares)
    return OperationOut.model_validate(operation)


@blueprint.get("/files/operations/<operation_id>")
@operation("One operation", OperationOut)
def get_operation(operation_id: str) -> OperationOut:
    """One operation."""
    return OperationOut.model_validate(services().files.operation(person(), operation_id))


@blueprint.delete("/files/operations/<operation_id>")
@operation("Cancel an operation", OperationOut)
def cancel_operation(operation_id: str) -> OperationOut:
    """Cancel an operation; completed changes stay."""
    return OperationOut.model_validate(services().files.cancel(person(), operation_id))


@blueprint.get("/files/uploads")
@operation("Your uploads that are not complete", UploadListOut)
def list_uploads() -> UploadListOut:
    """Uploads that are not complete."""
    uploads = services().files.uploads(person()).uploads
    return UploadListOut(uploads=[UploadOut.model_validate(item) for item in uploads])


@blueprint.delete("/files/uploads/<upload_id>")
@operation("Give up an upload", NoContent)
def drop_upload(upload_id: str) -> NoContent:
    """Delete an incomplete upload."""
    services().files.drop_upload(person(), upload_id)
    return NoContent()
