"""Streams that GnuPG encrypts: what was changed or cut off is refused, and no process is left."""

from __future__ import annotations

import io
import os
import secrets
import subprocess
import tempfile
from pathlib import Path

import pytest

from portal.adapters.backup import gpg
from portal.adapters.backup.gpg import GpgFailed, NotDecrypted, is_encrypted
from portal.adapters.backup.manifest import BadBackup

PASSPHRASE = "korrekt hörse battery"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def seal(file: Path, data: bytes) -> bytes:
    with open(file, "wb") as target, gpg.encrypting(target, PASSPHRASE) as stream:
        stream.write(data)
    return file.read_bytes()


def unseal(file: Path, passphrase: str = PASSPHRASE) -> bytes:
    with gpg.decrypting(file, passphrase) as stream:
        return io.BufferedReader(stream).read()


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_there_and_back(file: Path, temporary: Path, size: int) -> None:
    data = secrets.token_bytes(size)
    sealed = seal(file, data)
    assert is_encrypted(sealed)
    assert data[:50] not in sealed or size < 2
    assert unseal(file) == data
    assert list(temporary.iterdir()) == []


def test_an_administrator_can_decrypt_it_without_the_portal(file: Path, tmp_path: Path) -> None:
    seal(file, b"data")
    (tmp_path / "passphrase").write_text(f"{PASSPHRASE}\n")
    words: list[str | Path] = ["--batch", "--no-autostart", "--homedir", tmp_path]
    words += ["--pinentry-mode", "loopback"]
    words += ["--passphrase-file", tmp_path / "passphrase", "--decrypt", file]
    decrypted = subprocess.run(["gpg", *words], capture_output=True, check=True)
    assert decrypted.stdout == b"data"


def test_another_passphrase(file: Path) -> None:
    seal(file, b"data")
    with pytest.raises(NotDecrypted):
        unseal(file, PASSPHRASE + ".")


def test_whatever_is_changed_is_noticed(file: Path) -> None:
    sealed = seal(file, secrets.token_bytes(300_000))
    broken = {
        "cut": sealed[:-1],
        "cut in the middle": sealed[:150_000],
        "only the head": sealed[:20],
        "a bit": sealed[:1000] + bytes([sealed[1000] ^ 1]) + sealed[1001:],
        "the last bit": sealed[:-1] + bytes([sealed[-1] ^ 1]),
        "something appended": sealed + b"x",
        "twice": sealed + sealed,
    }
    for change, content in broken.items():
        file.write_bytes(content)
        with pytest.raises(NotDecrypted):
            pytest.fail(f"{change}: {len(unseal(file))} bytes")


def test_what_gpg_decompresses_is_refused(file: Path, tmp_path: Path) -> None:
    """Backups are compressed before they are encrypted: a small file has no large content."""
    words: list[str | Path] = ["--batch", "--no-autostart", "--homedir", tmp_path]
    words += ["--pinentry-mode", "loopback"]
    words += ["--passphrase", "p", "--s2k-count", "65536", "--output", file, "--symmetric"]
    subprocess.run(["gpg", *words], input=bytes(10_000_000), check=True, stderr=subprocess.PIPE)
    assert file.stat().st_size < 100_000
    with pytest.raises(BadBackup, match="larger than its file"):
        unseal(file, "p")


def test_a_full_disk_is_named() -> None:
    for size in (1, 10_000_000):
        with pytest.raises(GpgFailed, match="No space left on device"):
            seal(Path("/dev/full"), bytes(size))


def test_without_gpg_its_package_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(file, b"data")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(GpgFailed, match="apt install gpg"):
        unseal(file)


def test_an_error_of_the_caller_ends_the_process(file: Path, temporary: Path) -> None:
    seal(file, bytes(3_000_000))
    with pytest.raises(ZeroDivisionError), gpg.decrypting(file, PASSPHRASE) as stream:
        print(1 / len(stream.read(0) or b""))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert list(temporary.iterdir()) == []
