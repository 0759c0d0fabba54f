"""Copies of a database, also between kinds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from portal.adapters.backup import database
from portal.adapters.backup.database import CopyFailed, copy_database, is_empty
from portal.store.engine import is_known, is_too_old, newest, revision_of, upgrade
from tests.support.stored_sessions import store_session


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with one session."""
    upgrade(f"sqlite:///{tmp_path}/slipway.db")
    store_session(tmp_path)
    return f"sqlite:///{tmp_path}/slipway.db"


def rows(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """The content of all tables; counts of changes are those of one database."""
    with closing(sqlite3.connect(file)) as connection:
        names = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if row[0] != "change_count"
        ]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def test_a_copy_is_one_file_with_everything(url: str, tmp_path: Path) -> None:
    target = tmp_path / "copy" / "slipway.db"
    target.parent.mkdir()
    assert copy_database(url, target) == newest()
    assert rows(target) == rows(tmp_path / "slipway.db")
    assert [file.name for file in target.parent.iterdir()] == ["slipway.db"]
    assert target.stat().st_mode & 0o777 == 0o600


def test_all_rows_go_from_one_database_to_another(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with PostgreSQL, whose tables are read and written by SQLAlchemy."""
    store_session(tmp_path, id="b" * 32, name="silver2")
    monkeypatch.setattr(database, "sqlite_file", lambda _url: None)
    target = tmp_path / "copy.db"
    # The real function, for another kind of database: both are asked for their schema by it.
    assert copy_database(url, target) == newest()
    wanted = rows(tmp_path / "slipway.db")
    assert len(wanted["session"]) == 2
    assert rows(target) == wanted
    with closing(sqlite3.connect(tmp_path / "slipway.db")) as connection, connection:
        connection.execute("DELETE FROM session WHERE name = 'silver1'")
    database.load_database(target, url)
    assert rows(tmp_path / "slipway.db") == wanted


def test_a_load_that_fails_changes_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.db"
    copy_database(url, target)
    before = rows(tmp_path / "slipway.db")
    tables = database._tables()
    monkeypatch.setattr(database, "_tables", lambda: tables)

    def fail(*_words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(database, "_set_sequence", fail)
    with pytest.raises(KeyboardInterrupt):
        database.load_database(target, url)
    assert rows(tmp_path / "slipway.db") == before


def test_a_damaged_database_is_not_copied(url: str, tmp_path: Path) -> None:
    file = tmp_path / "slipway.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = bytearray(file.read_bytes())
    raw[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    file.write_bytes(raw)
    with pytest.raises((CopyFailed, sqlite3.DatabaseError)):
        copy_database(url, tmp_path / "copy.db")


def test_schemas(url: str, tmp_path: Path) -> None:
    assert is_known("0020")
    assert is_known(newest())
    assert not is_known("0019")
    assert not is_known("9999")
    assert [is_too_old(revision) for revision in ("0019", "0020", "9999", "")] == [
        True,
        False,
        False,
        False,
    ]
    assert revision_of(url) == newest()
    assert revision_of(f"sqlite:///{tmp_path}/none.db") == ""
    assert not is_empty(url)
    upgrade(f"sqlite:///{tmp_path}/new.db")
    assert is_empty(f"sqlite:///{tmp_path}/new.db")
    with pytest.raises(CopyFailed, match="slipway init"):
        copy_database(f"sqlite:///{tmp_path}/none.db", tmp_path / "copy.db")
