"""What a driver's error means."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from portal.errors import DatabaseFull, DatabaseUnavailable
from portal.store.engine import open_database
from portal.store.failures import meaning


def of_sqlite(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (of_sqlite(sqlite3.SQLITE_FULL), DatabaseFull),
        (of_sqlite(sqlite3.SQLITE_READONLY_DBMOVED), DatabaseFull),
        (of_sqlite(sqlite3.SQLITE_BUSY), DatabaseUnavailable),
        (of_sqlite(sqlite3.SQLITE_IOERR_READ), DatabaseUnavailable),
        (of_sqlite(sqlite3.SQLITE_ERROR), type(None)),
        (of_sqlite(sqlite3.SQLITE_CONSTRAINT), type(None)),
        (psycopg.errors.DiskFull(), DatabaseFull),
        (psycopg.errors.ReadOnlySqlTransaction(), DatabaseFull),
        (psycopg.errors.AdminShutdown(), DatabaseUnavailable),
        (psycopg.errors.TooManyConnections(), DatabaseUnavailable),
        (psycopg.errors.LockNotAvailable(), DatabaseUnavailable),
        (psycopg.OperationalError("connection refused"), DatabaseUnavailable),
        (psycopg.errors.UniqueViolation(), type(None)),
        (psycopg.errors.UndefinedTable(), type(None)),
    ],
    ids=lambda value: (
        getattr(value, "__name__", "")
        or f"{type(value).__name__} {getattr(value, 'sqlite_errorname', '')}"
    ),
)
def test_its_meaning(error: Exception, kind: type) -> None:
    assert type(meaning(error)) is kind


def test_a_connection_that_breaks(tmp_path: Path) -> None:
    assert isinstance(meaning(ValueError("closed"), disconnected=True), DatabaseUnavailable)


def test_faults_of_statements_remain_what_they_are(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(OperationalError, match="no such table"), engine.connect() as connection:
        connection.execute(text("SELECT * FROM nowhere"))


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path}/gone/x.db")
    with pytest.raises(DatabaseUnavailable) as raised:
        engine.connect()
    assert not isinstance(raised.value, SQLAlchemyError)
    assert "unable to open" in str(raised.value.__cause__)


def test_postgresql_that_does_not_answer() -> None:
    engine = open_database("postgresql+psycopg://nobody@127.0.0.1:1/nothing")
    with pytest.raises(DatabaseUnavailable):
        engine.connect()


def test_each_thread_may_have_a_connection_to_a_file(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path}/x.db")
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(engine.execution_options(read_only=True).connect())
