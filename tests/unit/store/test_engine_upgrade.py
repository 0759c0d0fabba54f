"""Migrations of a database that release 0.2.0 has created and filled.

tests/recorded/release_0_2_0 has its dumps: sqlite3's .dump, and pg_dump --inserts without comments
and with the condition of session_hub as it was created, since each dump adds casts to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, select, text
from sqlmodel import SQLModel

from portal.core.session.session import State
from portal.store.access import AccessStore
from portal.store.administration import AdministrationStore
from portal.store.engine import (
    SchemaTooOld,
    newest,
    open_database,
    revision_of,
    upgrade,
)
from portal.store.job_templates import JobTemplateStore
from portal.store.jobs.store import JobStore
from portal.store.logins import LoginStore
from portal.store.sessions import SessionStore
from tests.support.paths import RELEASE_0_2_0

NOW = datetime(2026, 11, 24, 18, tzinfo=UTC)


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """The database of release 0.2.0."""
    file = tmp_path / "recorded.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((RELEASE_0_2_0 / "sqlite.sql").read_text(encoding="utf-8"))
    return f"sqlite:///{file}"


@pytest.fixture
def fresh(tmp_path: Path) -> str:
    """A database that this release has created."""
    url = f"sqlite:///{tmp_path}/fresh.db"
    upgrade(url)
    return url


def schema(url: str) -> dict[str, Any]:
    """All tables with their columns in order, defaults, keys and indexes."""
    engine = create_engine(url)
    inspector = inspect(engine)
    described = {
        table: (
            [_as_texts(column) for column in inspector.get_columns(table)],
            inspector.get_pk_constraint(table),
            inspector.get_unique_constraints(table),
            {str(index["name"]): _as_texts(index) for index in inspector.get_indexes(table)},
            inspector.get_foreign_keys(table),
            inspector.get_check_constraints(table),
        )
        for table in inspector.get_table_names()
    }
    engine.dispose()
    return described


def _as_texts(described: Mapping[str, Any]) -> dict[str, Any]:
    """With types and conditions of partial indexes as texts, which can be compared."""
    return {
        name: _as_texts(value) if isinstance(value, Mapping) else str(value)
        for name, value in described.items()
    }


def rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables that exist, with the columns that exist."""
    engine = create_engine(url)
    with engine.connect() as connection:
        content = {
            table: [
                dict(row) for row in connection.execute(text(f'SELECT * FROM "{table}"')).mappings()
            ]
            for table in inspect(engine).get_table_names()
            if table != "alembic_version"
        }
    engine.dispose()
    return content


def set_revision(url: str, revision: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    engine.dispose()


def test_it_becomes_the_schema_of_this_release(recorded: str, fresh: str) -> None:
    assert revision_of(recorded) == "0020"
    upgrade(recorded)
    assert schema(recorded) == schema(fresh)
    assert revision_of(recorded) == revision_of(fresh) == newest()


def test_this_releases_schema_is_that_of_the_models(fresh: str) -> None:
    engine = open_database(fresh)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SQLModel.metadata) == []
    engine.dispose()


def test_its_rows_stay_as_they_were(recorded: str) -> None:
    before = rows(recorded)
    upgrade(recorded)
    migrated = rows(recorded)
    assert sum(map(len, before.values())) > 25
    for table, content in before.items():
        assert len(migrated[table]) == len(content)
        for old, new in zip(content, migrated[table], strict=True):
            assert old.items() <= new.items()
    upgrade(recorded)  # of this release's schema: nothing is left to do
    assert rows(recorded) == migrated


def test_the_stores_read_them(recorded: str) -> None:
    upgrade(recorded)
    engine = open_database(recorded)
    sessions = SessionStore(engine)
    (running,) = sessions.live()
    assert (running.name, running.state, running.named) == ("wise-heron", State.RUNNING, True)
    assert sessions.env(running.id) == {"TOKEN": "café 'quoted'"}
    ended = sessions.get("a" * 32)
    assert ended is not None
    assert (ended.apps, ended.begin) == (("jupyterlab", "terminal"), None)
    assert [app.label for app in AccessStore(engine).apps(running.id)] == ["quiet-otter"]
    logins = LoginStore(engine).logins("alice", NOW)
    assert {(login.kind, login.purpose, login.admin) for login in logins} == {
        ("browser", "", False),
        ("token", "", False),
    }
    job = JobStore(engine).get("43")
    assert job is not None
    assert (job.texts.name, job.report.time_limit) == ("train", 60)
    assert [t.name for t in JobTemplateStore(engine).visible("alice", [])] == ["train"]
    administration = AdministrationStore(engine)
    assert [template.qos for template in administration.templates()] == ["normal"]
    assert administration.site_rules().idle_minutes == 120
    with engine.connect() as connection:
        for table in SQLModel.metadata.sorted_tables:
            connection.execute(select(table)).all()  # every value is of its column's type
    engine.dispose()


def test_indexes_are_not_sorted_in_memory(recorded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    created, stores = op.create_index, set[int]()

    def noted(name: str, *values: Any, **options: Any) -> None:
        stores.add(op.get_bind().exec_driver_sql("PRAGMA temp_store").scalar_one())
        created(name, *values, **options)

    monkeypatch.setattr(op, "create_index", noted)
    upgrade(recorded)
    assert stores == {1}  # files


def test_an_older_schema_is_refused_and_unchanged(recorded: str) -> None:
    set_revision(recorded, "0019")
    before = schema(recorded)
    with pytest.raises(SchemaTooOld, match=r"Install 0\.2\.0 and run `slipway init`"):
        upgrade(recorded)
    assert schema(recorded) == before
    assert revision_of(recorded) == "0019"
