"""Files of backups that somebody else has made: refused in one sentence, before much is written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from portal.adapters.backup import archive, gpg
from portal.adapters.backup.manifest import MANIFEST, BadBackup, Manifest, describe
from tests.support.backup_archives import encrypt_as_release_0_2_0, manifest, member

ZEROS = bytes(1024 * 1024)
MIB = len(ZEROS)
MANY = 80
"""MiB of what is made to unpack to much, a thousandth of it in the file."""
MEMORY = 40 * MIB
"""Bytes that reading a backup may take: some pieces of 1 MiB, and a manifest with its text."""


Pieces = list[bytes | Iterator[bytes]]


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    """One block of a tar file, without any extension."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(tarfile.USTAR_FORMAT)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def entry(name: str, content: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    return header(name, len(content), kind) + padded(content)


def zeros(count: int) -> Iterator[bytes]:
    """MiB of zeros, a few KiB of gzip."""
    for _ in range(count):
        yield ZEROS


END = bytes(2 * 512)
A = entry("state/a", b"aaa")
SEALED = "a long passphrase"


class Backup:
    """Writes the file, compressed, and encrypted as well if there is a passphrase."""

    def __init__(self, folder: Path, passphrase: str, early: bool) -> None:
        self.file = folder / "file"
        self.target = folder / "to" / "extracted"
        self.target.parent.mkdir()
        self.passphrase = passphrase
        self.early = early

    def write(self, head: Any, *pieces: bytes | Iterator[bytes]) -> None:
        raw = head if isinstance(head, bytes) else json.dumps(head).encode()
        self.write_pieces(entry(MANIFEST, raw), *pieces)

    def write_pieces(self, *pieces: bytes | Iterator[bytes]) -> None:
        with open(self.file, "wb") as stream:
            if not self.passphrase or self.early:
                _compress(stream, pieces)
            else:
                with gpg.encrypting(stream, self.passphrase) as sealed:
                    _compress(sealed, pieces)
        if self.early:
            self.file.write_bytes(encrypt_as_release_0_2_0(self.file.read_bytes(), self.passphrase))

    def refusal(self) -> str:
        """The sentence with which it is refused."""
        shutil.rmtree(self.target, ignore_errors=True)
        with pytest.raises(BadBackup) as error:
            archive.extract(self.file, self.target, self.passphrase)
        text = str(error.value)
        assert len(text) < 500
        assert text.isprintable()
        return text.removeprefix(f"{self.file}: ")

    def written(self) -> int:
        """Bytes on the disk."""
        return sum(path.lstat().st_blocks * 512 for path in self.target.rglob("*"))


def _compress(stream: IO[bytes], pieces: Pieces | tuple[bytes | Iterator[bytes], ...]) -> None:
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1) as out:
        for piece in pieces:
            for part in [piece] if isinstance(piece, bytes) else piece:
                out.write(part)


@pytest.fixture(params=["clear", "encrypted", "early"])
def backup(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Backup:
    """A backup in the clear, or encrypted as by this release or as by releases up to 0.2.0."""
    # Not what is tested here, and each takes 64 MiB of memory.
    monkeypatch.setattr("portal.adapters.backup.encrypted._COST", 2)
    return Backup(tmp_path, "" if request.param == "clear" else SEALED, request.param == "early")


def test_what_the_project_wrote_is_read(backup: Backup, tmp_path: Path) -> None:
    """`write` has not changed since the first release with backups."""
    (tmp_path / "from" / "state").mkdir(parents=True)
    for name, content in [("a", b"aaa"), ("empty", b""), ("large", os.urandom(3 * MIB + 1))]:
        (tmp_path / "from" / "state" / name).write_bytes(content)
    made = Manifest.model_validate(manifest(members={}))
    made = made.model_copy(update={"members": describe(tmp_path / "from")})
    archive.write(backup.file, tmp_path / "from", made, backup.passphrase)
    assert archive.read_manifest(backup.file, backup.passphrase) == made
    assert archive.extract(backup.file, backup.target, backup.passphrase) == made
    assert describe(backup.target) == made.members


def test_the_smallest_backup(backup: Backup) -> None:
    backup.write(manifest(), A, END)
    archive.extract(backup.file, backup.target, backup.passphrase)
    assert (backup.target / "state" / "a").read_bytes() == b"aaa"


def test_nothing_is_written_beyond_the_manifests_sizes(backup: Backup) -> None:
    """48 MiB in place of three bytes."""
    backup.write(manifest(), header("state/a", 48 * MIB), zeros(48), END)
    assert backup.refusal() == "state/a has 50331648 bytes, and 3 in its manifest"
    assert backup.written() < MIB


def test_their_sum_is_compared_with_the_free_space_first(
    backup: Backup, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"size": 2**62, "sha256": "0" * 64}
    members = {"state/a": member(b"aaa"), "state/b": large}
    backup.write(manifest(members=members), A, END)
    text = backup.refusal()
    assert text.startswith("its files have 4,611,686,018,427.4 MB, and ")
    assert text.endswith(" MB free")
    assert backup.written() < MIB
    assert not (backup.target / "state").exists()


KINDS = {
    "link": (tarfile.LNKTYPE, "it has something that is not a regular file: 'state/a'"),
    "symbolic": (tarfile.SYMTYPE, "it has something that is not a regular file: 'state/a'"),
    "device": (tarfile.CHRTYPE, "it has something that is not a regular file: 'state/a'"),
    "pipe": (tarfile.FIFOTYPE, "it has something that is not a regular file: 'state/a'"),
    "folder": (tarfile.DIRTYPE, "it has something that is not a regular file: 'state/a'"),
    "contiguous": (tarfile.CONTTYPE, "it has something that is not a regular file: 'state/a'"),
    "long name": (
        tarfile.GNUTYPE_LONGNAME,
        "it has something that is not a regular file: 'state/a'",
    ),
    "long link": (
        tarfile.GNUTYPE_LONGLINK,
        "it has something that is not a regular file: 'state/a'",
    ),
    "sparse": (tarfile.GNUTYPE_SPARSE, "it has something that is not a regular file: 'state/a'"),
    "for all": (tarfile.XGLTYPE, "it has something that is not a regular file: 'state/a'"),
    "extended": (tarfile.XHDTYPE, "it has an extension header"),
    "Solaris": (tarfile.SOLARIS_XHDTYPE, "it has something that is not a regular file: 'state/a'"),
    "unknown": (b"Z", "it has something that is not a regular file: 'state/a'"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files(backup: Backup, kind: str) -> None:
    number, text = KINDS[kind]
    backup.write(manifest(), entry("state/a", b"aaa", number), A, END)
    assert backup.refusal() == text
    backup.write_pieces(entry("state/a", b"aaa", number), entry(MANIFEST, b"{}"), END)
    assert backup.refusal() == text


def sparse() -> bytes:
    """A member of GNU's old sparse format: 300 MiB of nothing, and three bytes."""
    block = bytearray(header("state/a", 3, tarfile.GNUTYPE_SPARSE))
    block[257:265] = b"ustar  \0"
    block[345:] = bytes(512 - 345)
    block[386:410] = b"%011o\0%011o\0" % (300 * MIB, 3)
    block[483:495] = b"%011o\0" % (300 * MIB + 3)
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + sum(block[156:]) + 8 * 32)
    return bytes(block) + padded(b"aaa")


def test_a_sparse_file_does_not_grow(backup: Backup) -> None:
    backup.write(manifest(), sparse(), END)
    assert backup.refusal() == "it has something that is not a regular file: 'state/a'"
    assert backup.written() < MIB


BOMBS: dict[str, Callable[[Backup], None]] = {
    "zeros before the manifest": lambda backup: backup.write_pieces(zeros(MANY)),
    "zeros after the end": lambda backup: backup.write(manifest(), A, END, zeros(MANY)),
    "a file that is in no manifest": lambda backup: backup.write(
        manifest(), header("state/b", MANY * MIB), zeros(MANY), END
    ),
    "a long name": lambda backup: backup.write(
        manifest(),
        header("././@LongLink", MANY * MIB, tarfile.GNUTYPE_LONGNAME),
        zeros(MANY),
        A,
        END,
    ),
    "a long name before the manifest": lambda backup: backup.write_pieces(
        header("././@LongLink", MANY * MIB, tarfile.GNUTYPE_LONGNAME), zeros(MANY), A, END
    ),
    "a long extended header": lambda backup: backup.write(
        manifest(), header("././@PaxHeader", MANY * MIB, tarfile.XHDTYPE), zeros(MANY), A, END
    ),
    "a long manifest": lambda backup: backup.write_pieces(
        header(MANIFEST, MANY * MIB), zeros(MANY), A, END
    ),
    "a deep manifest": lambda backup: backup.write(b"[" * 4_000_000, A, END),
}


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_unpacks_to_a_thousand_times_its_size(backup: Backup, bomb: str) -> None:
    BOMBS[bomb](backup)
    assert backup.file.stat().st_size < MIB
    with little_memory():
        assert backup.refusal()
    assert backup.written() < MIB


def test_a_large_file_is_not_in_memory_as_a_whole(backup: Backup) -> None:
    content = hashlib.sha256()
    for piece in zeros(MANY):
        content.update(piece)
    members = {"state/a": {"size": MANY * MIB, "sha256": content.hexdigest()}}
    backup.write(manifest(members=members), header("state/a", MANY * MIB), zeros(MANY), END)
    with little_memory():
        archive.extract(backup.file, backup.target, backup.passphrase)
    assert (backup.target / "state" / "a").stat().st_size == MANY * MIB


def test_other_files_than_the_manifests(backup: Backup) -> None:
    backup.write(manifest(), A, A, END)
    assert backup.refusal() == "it has a file that is not in its manifest: 'state/a'"
    backup.write(manifest(), entry("state/\x1b" + "b" * 80, b""), END)
    assert backup.refusal() == (
        f"it has a file that is not in its manifest: 'state/\\x1b{'b' * 32}…'"
    )
    backup.write(manifest(), END)
    assert backup.refusal() == "1 files are missing: state/a"
    backup.write(manifest(), entry("state/a", b"aab"), END)
    assert backup.refusal() == "state/a has another checksum"


@pytest.mark.parametrize("cut", [1, 511, 512, 513, 700, 1024, 1500])
def test_a_file_that_is_cut_off(backup: Backup, cut: int) -> None:
    raw = entry(MANIFEST, json.dumps(manifest()).encode()) + A
    backup.write_pieces(raw[: len(raw) - cut] if cut < len(raw) else b"")
    assert backup.refusal() == "it is cut off"
    backup.write_pieces(raw)
    assert backup.refusal() == "it is cut off"


def test_what_follows_the_end(backup: Backup) -> None:
    backup.write(manifest(), A, END, b"x")
    assert backup.refusal() == "it goes on after its end"
    backup.write(manifest(), A, END)
    if not backup.passphrase:
        backup.file.write_bytes(backup.file.read_bytes() + gzip.compress(A))
        assert backup.refusal() == "it goes on after its end"


def test_something_that_is_compressed_is_no_backup(backup: Backup) -> None:
    backup.write_pieces(b"x" * 4096)
    assert backup.refusal() == "it is not a tar file"
    backup.write_pieces(A, END)
    assert backup.refusal() == "it does not begin with manifest.json"
    backup.write_pieces(END)
    assert backup.refusal() == "it does not begin with manifest.json"
