"""`slipway backup` and `slipway restore`, on real state directories."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from portal.adapters.backup import archive, database
from portal.adapters.backup.manifest import Member
from portal.cli.main import main
from portal.store.engine import newest
from tests.support.backup_archives import encrypt_as_release_0_2_0
from tests.support.paths import ROOT
from tests.support.stored_sessions import store_session

ENTRIES = ("secret_key", "ca", "keys", "slipway.db")


def run(config: str, *words: str | Path) -> int:
    return main(["--config", config, *map(str, words)])


@pytest.fixture
def state(config: str, tmp_path: Path) -> Path:
    """The state directory of a portal with one session."""
    assert run(config, "init") == 0
    store_session(tmp_path / "state")
    return tmp_path / "state"


def sessions(state: Path) -> list[str]:
    return sessions_of(state / "slipway.db")


def sessions_of(file: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return sorted(row[0] for row in connection.execute("SELECT id FROM session"))


def content(state: Path) -> dict[str, bytes]:
    """Keys and certificates."""
    files = [state / "secret_key", *(state / "ca").iterdir(), *(state / "keys").iterdir()]
    return {str(file.relative_to(state)): file.read_bytes() for file in files}


@pytest.mark.parametrize("encrypt", [False, True])
def test_there_and_back(
    config: str, state: Path, tmp_path: Path, encrypt: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse battery\n")
    options = ["--passphrase-file", str(secret)] if encrypt else []
    file = tmp_path / "one.backup"
    assert run(config, "backup", file, *options) == 0
    assert ("private keys" in capsys.readouterr().out) is not encrypt
    assert file.stat().st_mode & 0o777 == 0o600
    raw = file.read_bytes()
    assert raw.startswith(b"\x8c\x0d\x04" if encrypt else b"\x1f\x8b")  # OpenPGP, or gzip
    before = content(state)
    shutil.rmtree(state)
    state.mkdir(mode=0o700)
    assert run(config, "restore", file, *options) == 0
    assert content(state) == before
    assert sessions(state) == ["a" * 32]
    assert not (state / "restore").exists()
    assert not list(state.glob("replaced-*"))
    assert run(config, "init") == 0


def test_what_was_written_a_moment_before_is_in_it(
    config: str, state: Path, tmp_path: Path
) -> None:
    """Copying slipway.db alone loses what is in its write-ahead log."""
    with closing(sqlite3.connect(state / "slipway.db")) as writer:
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute("UPDATE session SET name = 'newest'")
        writer.commit()
        assert (state / "slipway.db-wal").stat().st_size > 0
        assert run(config, "backup", tmp_path / "one") == 0
    assert run(config, "restore", tmp_path / "one", "--force") == 0
    with closing(sqlite3.connect(state / "slipway.db")) as reader:
        assert reader.execute("SELECT name FROM session").fetchone() == ("newest",)


def test_a_backup_while_the_portal_writes_is_consistent(
    config: str, state: Path, tmp_path: Path
) -> None:
    stop = threading.Event()
    with closing(sqlite3.connect(state / "slipway.db")) as first, first:
        first.execute("UPDATE session SET cpus = 0, memory_mb = 0")

    def write() -> None:
        with closing(sqlite3.connect(state / "slipway.db", timeout=20)) as writer:
            number = 0
            while not stop.is_set():
                number += 1
                with writer:
                    # Both or none: a copy must never have one of them alone.
                    writer.execute("UPDATE session SET cpus = ?, memory_mb = ?", (number, number))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            assert run(config, "backup", tmp_path / f"{number}") == 0
    finally:
        stop.set()
        thread.join()
    for number in range(5):
        archive.extract(tmp_path / f"{number}", tmp_path / f"x{number}")
        copy = tmp_path / f"x{number}" / "state" / "slipway.db"
        with closing(sqlite3.connect(copy)) as reader:
            cpus, memory = reader.execute("SELECT cpus, memory_mb FROM session").fetchone()
        assert cpus == memory


def test_an_existing_state_is_replaced_only_with_force_and_kept(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one"
    assert run(config, "backup", file) == 0
    store_session(state, id="b" * 32, name="silver2")
    before = content(state)
    assert run(config, "restore", file) == 1
    assert "with --force it is replaced" in capsys.readouterr().err
    assert len(sessions(state)) == 2
    assert run(config, "restore", file, "--force") == 0
    assert sessions(state) == ["a" * 32]
    (aside,) = state.glob("replaced-*")
    assert len(sessions(aside)) == 2
    assert content(aside) == before


def test_not_while_the_portal_runs(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "backup", tmp_path / "one") == 0
    code = (
        "from portal.adapters.backup.state import use; from portal.config import load_settings\n"
        f"use(load_settings({config!r}).state); print('held', flush=True); input()"
    )
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=-1, stdout=-1, text=True, cwd=ROOT) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert run(config, "restore", tmp_path / "one", "--force") == 1
        assert "stop it first" in capsys.readouterr().err
        other.communicate("\n")
    assert run(config, "restore", tmp_path / "one", "--force") == 0


def test_not_while_a_worker_of_an_earlier_release_runs(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "backup", tmp_path / "one") == 0
    with open(tmp_path / "run" / "worker.lock", "w", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run(config, "restore", tmp_path / "one", "--force") == 1
    assert "slipway-worker runs" in capsys.readouterr().err


def rewrite(file: Path, **changes: object) -> None:
    """Change a backup's manifest."""
    folder = file.with_name(f"{file.name}.x")
    manifest = archive.extract(file, folder)
    archive.write(file, folder, manifest.model_copy(update=changes))
    shutil.rmtree(folder)


def test_a_newer_releases_backup_is_refused_in_one_sentence(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one"
    assert run(config, "backup", file) == 0
    rewrite(file, schema_revision="9999", release="7.0.0")
    assert run(config, "restore", file, "--force") == 1
    told = capsys.readouterr().err
    assert "made by a newer release (7.0.0, schema 9999)" in told
    assert told.count("\n") == 1
    assert sessions(state) == ["a" * 32]
    assert not list(state.glob("replaced-*"))


def test_an_old_backup_is_refused_with_the_release_that_can_restore_it(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one"
    assert run(config, "backup", file) == 0
    rewrite(file, schema_revision="0019", release="0.1.0")
    assert run(config, "restore", file, "--force") == 1
    told = capsys.readouterr().err
    assert "0019, is older than that of release 0.2.0: install 0.2.0, restore it there" in told
    assert "nothing was changed" in told
    assert sessions(state) == ["a" * 32]
    assert not list(state.glob("replaced-*"))


def test_init_refuses_an_old_database_and_changes_nothing(
    config: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(state / "slipway.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0019'")
    assert run(config, "init") == 1
    assert "older than that of release 0.2.0, and was not changed" in capsys.readouterr().err
    assert not (state / "backups").exists()
    assert sessions(state) == ["a" * 32]


@pytest.fixture
def sealed(config: str, state: Path, tmp_path: Path) -> tuple[Path, Path]:
    """An encrypted backup and the file of its passphrase."""
    secret, file = tmp_path / "passphrase", tmp_path / "sealed"
    secret.write_text("correct horse battery\n")
    assert run(config, "backup", file, "--encrypt", "--passphrase-file", secret) == 0
    return file, secret


def test_an_encrypted_backup_of_an_early_release_is_restored(
    config: str, state: Path, tmp_path: Path
) -> None:
    secret, file = tmp_path / "passphrase", tmp_path / "one"
    secret.write_text("correct horse battery\n")
    assert run(config, "backup", file) == 0
    file.write_bytes(encrypt_as_release_0_2_0(file.read_bytes(), "correct horse battery"))
    before = content(state)
    assert run(config, "restore", file, "--force", "--passphrase-file", secret) == 0
    assert content(state) == before
    assert sessions(state) == ["a" * 32]


def test_without_gpg_nothing_is_changed(
    config: str,
    state: Path,
    sealed: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, secret = sealed
    raw, before = file.read_bytes(), content(state)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert run(config, "backup", file, "--passphrase-file", secret) == 1
    assert "apt install gpg" in capsys.readouterr().err
    assert file.read_bytes() == raw
    assert not list(file.parent.glob("*.part"))
    assert run(config, "restore", file, "--force", "--passphrase-file", secret) == 1
    told = capsys.readouterr().err
    assert "apt install gpg" in told
    assert "nothing was changed" in told
    assert content(state) == before
    assert not list(state.glob("replaced-*"))


@pytest.mark.parametrize("damage", ["cut", "flip", "passphrase", "tail"])
def test_a_damaged_encrypted_backup_changes_nothing(
    config: str,
    state: Path,
    sealed: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    damage: str,
) -> None:
    file, secret = sealed
    raw = bytearray(file.read_bytes())
    if damage == "passphrase":
        secret.write_text("wrong horse battery\n")
    elif damage == "tail":
        raw += b"x"
    elif damage == "cut":
        del raw[-100:]
    else:
        raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    before = content(state)
    assert run(config, "restore", file, "--force", "--passphrase-file", secret) == 1
    assert "the passphrase is wrong, or the file is damaged" in capsys.readouterr().err
    assert content(state) == before
    assert not (state / "restore").exists()
    assert not list(state.glob("replaced-*"))


@pytest.mark.parametrize("place", range(1, 10))
def test_a_damaged_backup_changes_nothing(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    file = tmp_path / "one"
    assert run(config, "backup", file) == 0
    raw = bytearray(file.read_bytes())
    if place == 9:
        del raw[len(raw) // 2 :]
    else:
        raw[len(raw) * place // 9] ^= 0xFF
    file.write_bytes(raw)
    before = content(state)
    assert run(config, "restore", file, "--force") == 1
    assert "nothing was changed" in capsys.readouterr().err
    assert content(state) == before
    assert sessions(state) == ["a" * 32]
    assert not (state / "restore").exists()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "state/../../evil", "state/.hidden"])
def test_a_file_elsewhere_is_refused(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / "one"
    assert run(config, "backup", file) == 0
    manifest = archive.read_manifest(file)
    members = {**manifest.members, name: Member(size=0, sha256="0" * 64)}
    head = manifest.model_copy(update={"members": members}).model_dump_json().encode()
    with tarfile.open(file, "w:gz") as tar:
        first = tarfile.TarInfo("manifest.json")
        first.size = len(head)
        tar.addfile(first, io.BytesIO(head))
        tar.addfile(tarfile.TarInfo(name))
    assert run(config, "restore", file, "--force") == 1
    assert "has a file of the name" in capsys.readouterr().err
    assert not list(tmp_path.rglob("evil"))


def test_something_else_is_no_backup(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "text"
    file.write_text("hello")
    assert run(config, "restore", file, "--force") == 1
    assert "not a backup of Slipway" in capsys.readouterr().err
    assert run(config, "restore", tmp_path / "missing") == 1
    assert "No such file" in capsys.readouterr().err
    assert sessions(state) == ["a" * 32]


def test_an_existing_backup_stays_until_the_new_one_is_complete(
    config: str, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "one"
    assert run(config, "backup", file) == 0
    before = file.read_bytes()

    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        assert run(config, "backup", file) == 1
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.glob(".one*")] == []
    assert list((state / "backups").iterdir()) == []


def test_short_or_missing_passphrases(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("short\n")
    assert run(config, "backup", tmp_path / "one", "--passphrase-file", secret) == 1
    assert "at least 12 characters" in capsys.readouterr().err
    assert run(config, "backup", tmp_path / "one", "--encrypt") == 1
    assert "use --passphrase-file" in capsys.readouterr().err
    assert not (tmp_path / "one").exists()


def test_settings_for_a_new_host(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, etc = tmp_path / "one", tmp_path / "etc"
    assert run(config, "backup", file) == 0
    assert main(["restore", str(file), "--settings", str(etc)]) == 0
    assert (etc / "slipway.toml").read_text() == Path(config).read_text()
    assert main(["restore", str(file), "--settings", str(etc)]) == 1
    assert "already; nothing was changed" in capsys.readouterr().err
    (etc / "slipway.toml").unlink()
    (etc / "slipway.toml").symlink_to(tmp_path / "elsewhere")  # such as another account's
    assert main(["restore", str(file), "--settings", str(etc)]) == 1
    assert not (tmp_path / "elsewhere").exists()


def test_before_a_migration_the_database_is_copied(
    config: str, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copies = state / "backups"
    assert run(config, "init") == 0
    assert not copies.exists()  # nothing was migrated
    with closing(sqlite3.connect(state / "slipway.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0020'")
    # The tables of later releases exist already, so that the migration fails; the copy is there.
    with caplog.at_level("INFO"), pytest.raises(Exception, match=r"already exists|duplicate"):
        run(config, "init")
    (found,) = copies.glob("slipway-0020-*.db")
    assert sessions_of(found) == ["a" * 32]
    assert found.stat().st_mode & 0o777 == 0o600
    assert "before its migration, the database was copied" in caplog.text


def test_the_newest_copies_are_kept(config: str, state: Path, tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415

    url = f"sqlite:///{state}/slipway.db"
    with closing(sqlite3.connect(state / "slipway.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0020'")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    made = [
        database.keep_copy(url, tmp_path / "copies", start + timedelta(days=day))
        for day in range(8)
    ]
    left = sorted((tmp_path / "copies").iterdir())
    assert left == [file for file in made[-5:] if file]
    assert left[-1].name == "slipway-0020-20260108T000000Z.db"


def killed(config: str, file: Path, moment: int) -> int:
    """Restore in a process that is killed before its rename or unlink of this number."""
    child = os.fork()
    if child == 0:
        left = [moment]

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*words: object, **named: object) -> object:
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return real(*words, **named)

            return call

        for name in ("rename", "replace", "unlink", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        os._exit(run(config, "restore", file, "--force"))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_restoration_killed_at_any_moment_leaves_the_old_or_the_new_state(
    config: str, state: Path, tmp_path: Path
) -> None:
    """SIGKILL before each change of a name; then the portal starts."""
    file = tmp_path / "one"
    assert run(config, "backup", file) == 0
    new = (content(state), ["a" * 32])
    shutil.rmtree(state)
    assert run(config, "init") == 0
    store_session(state, id="b" * 32)
    pristine = tmp_path / "pristine"
    shutil.copytree(state, pristine)
    old = (content(state), ["b" * 32])
    seen = {"old": 0, "new": 0}
    for moment in range(200):
        shutil.rmtree(state)
        shutil.copytree(pristine, state)
        code = killed(config, file, moment)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        assert run(config, "init") == 0
        found = (content(state), sessions(state))
        assert found in (old, new), moment
        seen["old" if found == old else "new"] += 1
        if found == new:
            (aside,) = state.glob("replaced-*")
            assert (content(aside), sessions(aside)) == old
    else:
        pytest.fail("it never ends")
    assert seen["old"] > 3
    assert seen["new"] > 3


def test_a_manifest_says_what_it_is_of(config: str, state: Path, tmp_path: Path) -> None:
    assert run(config, "backup", tmp_path / "one") == 0
    with tarfile.open(tmp_path / "one") as tar:
        first = tar.extractfile("manifest.json")
        assert first is not None
        manifest = json.load(first)
        names = tar.getnames()
    assert names[0] == "manifest.json"
    assert manifest["database"] == "sqlite"
    assert manifest["schema_revision"] == newest()
    assert set(names[1:]) == set(manifest["members"])
    wanted = {"state/slipway.db", "state/secret_key", "state/ca/user_ca", "etc/slipway.toml"}
    assert wanted <= set(names)
