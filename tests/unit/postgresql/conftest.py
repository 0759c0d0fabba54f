"""Gives every World and every JobStore of these tests a PostgreSQL database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from portal.store.engine import open_database
from tests.support import fakes, job_store
from tests.support.postgresql import PostgreSQL, programs, short_folder


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """One server for all tests of this process."""
    if programs() is None:
        pytest.skip("needs the programs of PostgreSQL (apt install postgresql)")
    folder = short_folder()
    server = PostgreSQL(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def url(postgresql: PostgreSQL) -> str:
    """An empty database with all tables."""
    return postgresql.shared_database()


@pytest.fixture(autouse=True)
def on_postgresql(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A World or JobStore that is made has this database, in the place of SQLite's."""
    made: list[Engine] = []

    def fresh_database(_state: object) -> Engine:
        made.append(open_database(url))
        return made[-1]

    monkeypatch.setattr(fakes, "fresh_database", fresh_database)
    monkeypatch.setattr(job_store, "migrated_database", fresh_database)
    yield
    for engine in made:
        engine.dispose()
