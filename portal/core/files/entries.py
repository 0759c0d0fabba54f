"""What a file server tells about files; it is its user's own process, so everything is checked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _time(seconds: object) -> object:
    """Seconds since 1970 as a time; a file's can be any number."""
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        latest = datetime.max.replace(tzinfo=UTC).timestamp() - 86400
        return datetime.fromtimestamp(min(max(seconds, -62135510400.0), latest), UTC)
    return seconds


Name = Annotated[str, Field(max_length=4096)]
"""Text for people; the file's own name may be in any encoding."""
Path = Annotated[str, Field(max_length=16384, pattern=r"^[\x21-\x7e]*$")]
"""A location, percent-encoded as in a URL."""
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
When = Annotated[datetime, BeforeValidator(_time)]
Kind = Literal["file", "folder", "link", "fifo", "socket", "device"]


class _Value(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Entry(_Value):
    """One file, folder or other thing in a folder."""

    name: Name
    path: Path
    kind: Kind
    is_folder: bool
    """Whether it can be opened as a folder: also for a link to one."""
    size: Count
    modified: When
    mode: Annotated[str, Field(pattern=r"^[0-7]{4}$")]
    owner: Name
    group: Name
    etag: Annotated[str, Field(max_length=200)]
    link: Name | None
    """Where a link leads."""


class Listing(_Value):
    """A page of a folder's entries."""

    folder: Entry
    entries: Annotated[tuple[Entry, ...], Field(max_length=1000)]
    total: Count
    offset: Count
    writable: bool


class Found(_Value):
    """What a search has found."""

    entries: Annotated[tuple[Entry, ...], Field(max_length=1000)]
    complete: bool
    """False if there may be more: the search takes some seconds at most."""


class Usage(_Value):
    """What is below a folder, as far as it has been counted."""

    bytes: Count
    files: Count
    folders: Count
    complete: bool
    counted: When | None = None


class Trouble(_Value):
    """What an operation could not do."""

    path: Path
    name: Name
    detail: Name


class Operation(_Value):
    """Something that takes long: a copy, for example."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    kind: Literal["copy", "move", "delete", "mode"]
    state: Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
    files: Count = 0
    files_total: Count | None = None
    bytes: Count = 0
    bytes_total: Count | None = None
    current: Name = ""
    problems: Annotated[tuple[Trouble, ...], Field(max_length=100)] = ()
    problem_count: Count = 0
    to: Path | None = None
    """None for those that only delete or change."""
    started: When | None = None
    ended: When | None = None


class Operations(_Value):
    """The operations of the last hour, and those that run."""

    operations: Annotated[tuple[Operation, ...], Field(max_length=1000)]


class Upload(_Value):
    """An upload that is not complete."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    path: Path
    name: Name
    length: Count
    offset: Count
    expires: When


class Uploads(_Value):
    """The user's incomplete uploads."""

    uploads: Annotated[tuple[Upload, ...], Field(max_length=10000)]


class Quota(_Value):
    """How much may be stored, and is; None where that is unknown or unlimited."""

    source: Annotated[str, Field(max_length=40)]
    used: Count | None = None
    limit: Count | None = None
    files: Count | None = None
    files_limit: Count | None = None
