"""The file of a backup: a compressed tar; its first member, manifest.json, describes the others.

The file is not trusted: no member is larger than the manifest says, the disk has room for all
members before the first one is written, and only one piece of a member is in memory.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from portal.adapters.backup import gpg
from portal.adapters.backup.database import sync
from portal.adapters.backup.encrypted import MAGIC, DecryptingReader
from portal.adapters.backup.inflated import InflatingReader
from portal.adapters.backup.manifest import (
    LONGEST_MANIFEST,
    MANIFEST,
    BadBackup,
    Manifest,
    Member,
    parse,
)
from portal.adapters.backup.tar import TarReader
from portal.errors import clip

_PIECE = 1024 * 1024


def write(target: Path, folder: Path, manifest: Manifest, passphrase: str = "") -> None:
    """Write a backup of a folder's files; the target appears once it is complete."""
    for old in target.parent.glob(f".{target.name}.*.part"):
        old.unlink(missing_ok=True)  # left by a command that was killed
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if passphrase:
                with gpg.encrypting(stream, passphrase) as sealed:
                    _write_members(sealed, folder, manifest)
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
        head = stream.read(len(MAGIC))
    return head == MAGIC or gpg.is_encrypted(head)


def read_manifest(file: Path, passphrase: str = "") -> Manifest:
    """Read a backup's manifest; raises BadBackup."""
    with _opened(file, passphrase) as tar:
        return _manifest(tar)


def extract(file: Path, folder: Path, passphrase: str = "") -> Manifest:
    """Extract all files below a folder, and compare their checksums; raises BadBackup."""
    with _opened(file, passphrase) as tar:
        manifest = _manifest(tar)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_larger_than_free(manifest, folder)
        missing = dict(manifest.members)
        while (entry := tar.next()) is not None:
            name, size = entry
            member = missing.pop(name, None)
            if member is None:
                raise BadBackup(f"it has a file that is not in its manifest: {clip(name)!r}")
            if member.size != size:
                raise BadBackup(f"{name} has {size} bytes, and {member.size} in its manifest")
            if _store(tar, folder / name) != member:
                raise BadBackup(f"{name} has another checksum")
        if missing:
            raise BadBackup(f"{len(missing)} files are missing: {', '.join(sorted(missing)[:3])}")
    return manifest


@contextmanager
def _opened(file: Path, passphrase: str) -> Iterator[TarReader]:
    try:
        with _decrypted(file, passphrase) as source:
            try:
                yield TarReader(io.BufferedReader(InflatingReader(source), _PIECE))
            except (BadBackup, zlib.error):
                _authenticate(source, passphrase)  # the cause is a damaged file more often
                raise
            _authenticate(source, passphrase)
    except gpg.NotDecrypted:
        raise BadBackup(f"{file}: the passphrase is wrong, or the file is damaged") from None
    except BadBackup as error:
        raise BadBackup(f"{file}: {error}") from None
    except zlib.error as error:
        raise BadBackup(f"{file} is not a backup of Slipway, or is damaged ({error})") from None


@contextmanager
def _decrypted(file: Path, passphrase: str) -> Iterator[IO[bytes]]:
    with open(file, "rb") as stream:
        if not passphrase:
            yield stream
            return
        is_early = stream.read(len(MAGIC)) == MAGIC
        stream.seek(0)
        if is_early:
            yield io.BufferedReader(DecryptingReader(stream, passphrase), _PIECE)
            return
    with gpg.decrypting(file, passphrase) as source:
        yield io.BufferedReader(source, _PIECE)


def _authenticate(source: IO[bytes], passphrase: str) -> None:
    """Read an encrypted backup to its end; raises NotDecrypted."""
    while passphrase and source.read(_PIECE):
        pass


def _manifest(tar: TarReader) -> Manifest:
    name, size = tar.next() or ("", 0)
    if name != MANIFEST:
        raise BadBackup(f"it does not begin with {MANIFEST}")
    if size > LONGEST_MANIFEST:
        raise BadBackup(f"{MANIFEST} in it has {size} bytes")
    raw = b""
    while piece := tar.read(_PIECE):
        raw += piece
    return parse(raw)


def _refuse_larger_than_free(manifest: Manifest, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if manifest.size > free:
        raise BadBackup(
            f"its files have {manifest.size / 1e6:,.1f} MB, and {folder.parent} has "
            f"{free / 1e6:,.1f} MB free"
        )


def _store(tar: TarReader, target: Path) -> Member:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while piece := tar.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return Member(size=size, sha256=digest.hexdigest())
