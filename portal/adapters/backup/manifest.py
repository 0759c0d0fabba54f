"""manifest.json, the description of a backup, read as untrusted input."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from portal.errors import clip
from portal.node.common.json_text import NotJson, decode_object

FORMAT = 1
MANIFEST = "manifest.json"
LONGEST_MANIFEST = 4 * 1024 * 1024
MOST_FILES = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){0,2}")
_LONGEST_NAME = 100
"""Length of a name in a tar header; longer names need an extension header."""


class BadBackup(Exception):
    """The file is not a backup, is damaged, or cannot be restored here; the text says which."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has characters that cannot be printed")
    return text


Shown = Annotated[str, Field(max_length=200), AfterValidator(_printable)]


class Member(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(frozen=True, strict=True)

    size: int = Field(ge=0, lt=2**63)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """The origin of a backup, and its files."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: int
    release: Shown
    """The version of Slipway that wrote the backup."""
    schema_revision: Shown
    """The schema revision of the database."""
    made: Shown
    host: Shown
    database: Shown
    """The database's backend: sqlite or postgresql."""
    members: dict[str, Member]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(member.size for member in self.members.values())


def parse(raw: bytes) -> Manifest:
    """Read manifest.json; raises BadBackup."""
    try:
        data = decode_object(raw)
        number = data.get("format")
        if isinstance(number, int) and number != FORMAT:
            raise BadBackup(f"the backup has format {number}, this release reads {FORMAT}")
        manifest = Manifest.model_validate(data)
    except NotJson as error:
        raise BadBackup(f"{MANIFEST} in it {error}") from None
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        field = clip(".".join(map(str, first["loc"])))
        raise BadBackup(f"{MANIFEST} in it cannot be read: {field!r}: {first['msg']}") from None
    check_names(manifest.members)
    return manifest


def check_names(members: dict[str, Member]) -> None:
    """Raise BadBackup for names that lead out of the folder, or are both a file and a folder."""
    if len(members) > MOST_FILES:
        raise BadBackup(f"it has {len(members)} files, and may have {MOST_FILES}")
    for name in members:
        if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name) or name == MANIFEST:
            raise BadBackup(f"it has a file of the name {clip(name)!r}")
        for folder in PurePosixPath(name).parents:
            if str(folder) in members:
                raise BadBackup(f"it has {clip(str(folder))!r} both as a file and as a folder")


def describe(folder: Path) -> dict[str, Member]:
    """All files below a folder by relative path; raises BadBackup for invalid names."""
    members = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with open(file, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        name = str(PurePosixPath(file.relative_to(folder)))
        members[name] = Member(size=file.stat().st_size, sha256=digest)
    check_names(members)
    return members
