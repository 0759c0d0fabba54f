"""Files and folders in the API."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from portal.core.files.entries import Kind, Listing
from portal.core.files.shares import Access
from portal.core.files.shares import Kind as ShareKind
from portal.core.files.uses import FolderUse
from portal.web.api.models.base import REQUEST, ResponseModel, Time

Text = Annotated[str, Field(max_length=4096)]
Location = Annotated[str, Field(min_length=1, max_length=16384)]


class SavingOut(ResponseModel):
    """How new contents of a file are written."""

    how: Literal["replace", "in_place", "refused"]
    """"replace": they appear at once; "in_place": in the same file, whose links and owner stay."""
    detail: str
    """What cannot be kept, or why it is refused; often empty."""


class EntryOut(ResponseModel):
    """A file, a folder or another entry of a folder."""

    name: str
    """Its name as text; bytes that are not UTF-8 are replaced."""
    path: str
    """Its location, percent-encoded: use it as it is in other requests."""
    kind: Kind
    is_folder: bool
    """Whether it can be listed: also for a link to a folder."""
    size: int
    """Bytes of a file."""
    modified: Time
    mode: str
    """Permissions in octal, such as 0640."""
    owner: str
    group: str
    etag: str
    """Changes with the contents; for If-Match."""
    link: str | None
    """The target of a link; null for other entries."""
    saving: SavingOut | None
    """How new contents of this file are written; null in lists, and for anything but a file."""


class ListingOut(ResponseModel):
    """A page of a folder's entries, folders first."""

    folder: EntryOut
    entries: list[EntryOut]
    total: int
    """Entries of the folder (that match the search)."""
    offset: int
    writable: bool
    """Whether you may create something in it."""

    @classmethod
    def of(cls, listing: Listing) -> Self:
        """Build it."""
        return cls.model_validate(listing)


class FoundOut(ResponseModel):
    """The results of a search."""

    entries: list[EntryOut]
    complete: bool
    """False if there may be more: a search ends after some seconds."""


class FolderUsageOut(ResponseModel):
    """The number and size of the files below a folder."""

    bytes: int
    files: int
    folders: int
    complete: bool
    """False while counting continues: repeat the request."""


class QuotaOut(ResponseModel):
    """Use and limit of storage; null where unknown or unlimited."""

    used: int | None
    """Bytes."""
    limit: int | None
    """Bytes."""
    files: int | None
    files_limit: int | None


class OperationProblemOut(ResponseModel):
    """A failure of an operation on one file."""

    path: str
    name: str
    detail: str


class OperationOut(ResponseModel):
    """A copy, a move, a deletion, a change of permissions, an unpacking or a fetching."""

    id: str
    kind: Literal["copy", "move", "delete", "mode", "unpack", "fetch"]
    state: Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
    """"interrupted": its process was killed; completed changes stay."""
    files: int
    files_total: int | None
    """Null while they are being counted."""
    bytes: int
    bytes_total: int | None
    current: str
    problems: list[OperationProblemOut]
    """The first hundred."""
    problem_count: int
    detail: str
    """The result in words, or the reason of a failure."""


class OperationListOut(ResponseModel):
    """Operations that run, and those of the last hour."""

    operations: list[OperationOut]


class UploadOut(ResponseModel):
    """An upload that is not complete; continue it at /data/uploads/{id} (tus 1.0)."""

    id: str
    path: str
    """The location of the complete file."""
    name: str
    length: int | None
    """Null if the client sends it later."""
    offset: int
    """Bytes received."""
    is_partial: bool
    """Whether it is a part for a final upload (concatenation of tus), without a name of its own."""
    expires: Time


class UploadListOut(ResponseModel):
    """Your uploads that are not complete."""

    uploads: list[UploadOut]


class RecipientOut(ResponseModel):
    """A user or group that a folder is shared with."""

    kind: ShareKind
    name: str
    access: Access


class MountedInOut(ResponseModel):
    """A live session that has a folder mounted."""

    owner: str
    id: str | None
    """Null for sessions of others, whose names are not told either."""
    name: str | None


class FolderUseOut(ResponseModel):
    """Who uses a storage folder of yours."""

    folder: str
    """Its name."""
    shares: list[RecipientOut]
    sessions: list[MountedInOut]
    text: str
    """Who would lose it, in words; empty if nobody uses it."""

    @classmethod
    def of(cls, use: FolderUse) -> Self:
        """Build it."""
        return cls(
            folder=use.folder,
            shares=[
                RecipientOut(kind=share.key.kind, name=share.key.name, access=share.access)
                for share in use.shares
            ],
            sessions=[
                *(MountedInOut(owner=s.owner, id=s.id, name=s.name) for s in use.own),
                *(MountedInOut(owner=s.owner, id=None, name=None) for s in use.others),
            ],
            text=use.text,
        )


class FolderUsesOut(ResponseModel):
    """The storage folder at a location, or the one that it is in, and who uses it."""

    use: FolderUseOut | None
    """Null if it is in no storage folder of yours."""


class RenameRequest(BaseModel):
    """A new name."""

    model_config = REQUEST

    name: Annotated[str, Field(min_length=1, max_length=255)]


class OperationRequest(BaseModel):
    """An operation on files and folders."""

    model_config = REQUEST

    kind: Literal["copy", "move", "delete", "mode", "unpack", "fetch"]
    items: Annotated[list[Location], Field(max_length=1000)] = []
    """Locations, at least one; none for "fetch"."""
    to: Location | None = None
    """The folder to copy, move, unpack or fetch into; archives that are in one folder need none,
    and get their new folders beside them."""
    url: Annotated[str, Field(max_length=8192)] | None = None
    """For "fetch", from a host that the site permits."""
    name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """For "fetch": the name of the file, if not the last one of the URL."""
    sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")] | None = None
    """For "fetch": another file is not accepted."""
    on_conflict: Literal["refuse", "rename", "replace", "skip"] = "refuse"
    """The action where the name exists already."""
    mode: Annotated[str, Field(pattern="^0?[0-7]{3}$")] | None = None
    """The permissions in octal, for "mode"."""
    end_shares: bool = False
    """Whether the shares of storage folders end that are moved, deleted or replaced. Without it,
    such a request is refused (409, code "shared"): its answer names who would lose the folder."""


QUERY = ConfigDict(extra="forbid", use_attribute_docstrings=True)
"""Not strict: the values of a query are text."""


class ListQuery(BaseModel):
    """The entries to list, and their order."""

    model_config = QUERY

    sort: Literal["name", "size", "modified"] = "name"
    order: Literal["asc", "desc"] = "asc"
    search: Annotated[str, Field(max_length=255)] = ""
    """Part of the name."""
    hidden: Literal["true", "false"] = "false"
    """Whether names that begin with a dot are listed."""
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class SearchQuery(BaseModel):
    """The search."""

    model_config = QUERY

    text: Annotated[str, Field(min_length=1, max_length=255)]
    """Part of the name."""
