"""The file of a backup: a compressed tar; its first member, manifest.json, describes the others."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from portal.adapters.backup.database import sync
from portal.adapters.backup.encrypted import (
    MAGIC,
    DecryptingReader,
    EncryptingWriter,
    NotDecrypted,
)

FORMAT = 1
MANIFEST = "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){0,2}")
_LONGEST_MANIFEST = 4 * 1024 * 1024
_PIECE = 1024 * 1024


class BadBackup(Exception):
    """The file is no backup, or is damaged; the text says so."""


class Member(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(frozen=True)

    size: int
    sha256: str


class Manifest(BaseModel):
    """What a backup is of, and its files."""

    model_config = ConfigDict(frozen=True)

    format: int
    release: str
    """The version of Slipway that made it."""
    schema_revision: str
    """The database's."""
    made: str
    host: str
    database: str
    """What the database was kept in: sqlite or postgresql."""
    members: dict[str, Member]


def describe(folder: Path) -> dict[str, Member]:
    """All files below a folder, by their paths in it."""
    found = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with open(file, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        name = str(PurePosixPath(file.relative_to(folder)))
        found[name] = Member(size=file.stat().st_size, sha256=digest)
    return found


def write(target: Path, folder: Path, manifest: Manifest, passphrase: str = "") -> None:
    """Write a backup of a folder's files; the target appears when it is complete."""
    for old in target.parent.glob(f".{target.name}.*.part"):
        old.unlink(missing_ok=True)  # of a command that was killed
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if passphrase:
                sealed = EncryptingWriter(stream, passphrase)
                _write_members(sealed, folder, manifest)
                sealed.finish()
            else:
                _write_members(stream, folder, manifest)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
        sync(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def _write_members(stream: Any, folder: Path, manifest: Manifest) -> None:
    with tarfile.open(mode="w|gz", fileobj=stream, bufsize=_PIECE) as tar:
        head = manifest.model_dump_json(indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size = len(head)
        tar.addfile(info, io.BytesIO(head))
        for name, member in manifest.members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = member.size, 0o600
            with open(folder / name, "rb") as file:
                tar.addfile(info, file)


def is_encrypted(file: Path) -> bool:
    """Whether a backup needs a passphrase."""
    with open(file, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def read_manifest(file: Path, passphrase: str = "") -> Manifest:
    """What a backup is of; raises BadBackup."""
    with _opened(file, passphrase) as tar:
        return _manifest(tar)


def extract(file: Path, folder: Path, passphrase: str = "") -> Manifest:
    """Extract all files below a folder, and compare their checksums; raises BadBackup."""
    with _opened(file, passphrase) as tar:
        manifest = _manifest(tar)
        missing = set(manifest.members)
        while (info := tar.next()) is not None:
            if info.name not in missing or not info.isreg():
                raise BadBackup(f"{file} has a file that is not in its manifest: {info.name!r}")
            stream = tar.extractfile(info)
            if stream is None or _store(stream, folder / info.name) != manifest.members[info.name]:
                raise BadBackup(f"{file} is damaged: {info.name} has another checksum")
            missing.discard(info.name)
    if missing:
        raise BadBackup(f"{file} is incomplete: {', '.join(sorted(missing))}")
    return manifest


@contextmanager
def _opened(file: Path, passphrase: str) -> Iterator[tarfile.TarFile]:
    try:
        with open(file, "rb") as stream:
            source: Any = stream
            if passphrase:
                source = io.BufferedReader(DecryptingReader(stream, passphrase), _PIECE)
            with tarfile.open(mode="r|gz", fileobj=source, bufsize=_PIECE) as tar:
                yield tar
            while source.read(_PIECE):  # to its authenticated end
                pass
    except NotDecrypted:
        raise BadBackup(f"{file}: the passphrase is wrong, or the file is damaged") from None
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise BadBackup(f"{file} is no backup of Slipway, or is damaged ({error})") from None


def _manifest(tar: tarfile.TarFile) -> Manifest:
    first = tar.next()
    stream = tar.extractfile(first) if first is not None and first.isreg() else None
    if first is None or stream is None or first.name != MANIFEST:
        raise BadBackup(f"this is no backup of Slipway: it does not begin with {MANIFEST}")
    try:
        data = json.loads(stream.read(_LONGEST_MANIFEST))
        if isinstance(data, dict) and data.get("format") != FORMAT:
            number = data.get("format")
            raise BadBackup(f"the backup has format {number}, this release reads {FORMAT}")
        manifest = Manifest.model_validate(data)
    except (ValueError, ValidationError):
        raise BadBackup(f"{MANIFEST} in it cannot be read") from None
    for name in manifest.members:
        if not _NAME.fullmatch(name):
            raise BadBackup(f"it has a file of the name {name!r}")
    return manifest


def _store(source: IO[bytes], target: Path) -> Member:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while piece := source.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return Member(size=size, sha256=digest.hexdigest())
