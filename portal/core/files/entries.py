"""Responses of file servers, fully validated, since file servers are processes of their users."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _time(seconds: object) -> object:
    """Convert seconds since 1970 to a time; file times can be any number."""
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        latest = datetime.max.replace(tzinfo=UTC).timestamp() - 86400
        return datetime.fromtimestamp(min(max(seconds, -62135510400.0), latest), UTC)
    return seconds


Name = Annotated[str, Field(max_length=4096)]
"""Text for display; the name on disk may be in any encoding."""
Path = Annotated[str, Field(max_length=16384, pattern=r"^[\x21-\x7e]*$")]
"""A location, percent-encoded as in a URL."""
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
When = Annotated[datetime, BeforeValidator(_time)]
Kind = Literal["file", "folder", "link", "fifo", "socket", "device"]


class _Value(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Saving(_Value):
    """How new contents of a file are written."""

    how: Literal["replace", "in_place", "refused"]
    detail: Annotated[str, Field(max_length=4096)]
    """What cannot be kept, or why it is refused; often ""."""


class Entry(_Value):
    """One entry of a folder: a file, folder, link or special file."""

    name: Name
    path: Path
    kind: Kind
    is_folder: bool
    """Whether it can be opened as a folder; also true for a link to a folder."""
    size: Count
    modified: When
    mode: Annotated[str, Field(pattern=r"^[0-7]{4}$")]
    owner: Name
    group: Name
    etag: Annotated[str, Field(max_length=200)]
    link: Name | None
    """The target of a link."""
    saving: Saving | None = None
    """Of a single file; None in lists."""


class Listing(_Value):
    """A page of a folder's entries."""

    folder: Entry
    entries: Annotated[tuple[Entry, ...], Field(max_length=1000)]
    total: Count
    offset: Count
    writable: bool


class SearchResult(_Value):
    """The result of a search."""

    entries: Annotated[tuple[Entry, ...], Field(max_length=1000)]
    complete: bool
    """False if there may be more entries: a search ends after some seconds."""


class Usage(_Value):
    """Disk usage below a folder, as far as it has been counted."""

    bytes: Count
    files: Count
    folders: Count
    complete: bool
    counted: When | None = None


class OperationProblem(_Value):
    """An item that an operation could not process."""

    path: Path
    name: Name
    detail: Name


class Operation(_Value):
    """A background operation, for example a copy."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    kind: Literal["copy", "move", "delete", "mode", "unpack", "fetch"]
    state: Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
    files: Count = 0
    files_total: Count | None = None
    bytes: Count = 0
    bytes_total: Count | None = None
    current: Name = ""
    problems: Annotated[tuple[OperationProblem, ...], Field(max_length=100)] = ()
    problem_count: Count = 0
    detail: Name = ""
    """The result in words."""
    to: Path | None = None
    """The target folder; None for operations that only delete or change."""
    started: When | None = None
    ended: When | None = None


class Operations(_Value):
    """Running operations, and those of the last hour."""

    operations: Annotated[tuple[Operation, ...], Field(max_length=1000)]


class Upload(_Value):
    """An upload that is not complete."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    path: Path
    name: Name
    length: Count | None
    """None if the client sends it later."""
    offset: Count
    is_partial: bool = False
    expires: When


class Uploads(_Value):
    """The user's incomplete uploads."""

    uploads: Annotated[tuple[Upload, ...], Field(max_length=10000)]


class Quota(_Value):
    """Limits and use of storage; None if unknown or unlimited."""

    source: Annotated[str, Field(max_length=40)]
    used: Count | None = None
    limit: Count | None = None
    files: Count | None = None
    files_limit: Count | None = None
