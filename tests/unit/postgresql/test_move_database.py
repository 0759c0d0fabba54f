"""`slipway move-database`: from SQLite to PostgreSQL and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Engine,
    Enum,
    Float,
    Integer,
    LargeBinary,
    NullPool,
    create_engine,
    inspect,
    text,
)

from portal.adapters.backup import database
from portal.adapters.backup.database import row_counts
from portal.cli.main import main
from portal.core.launch.mounts import Mount
from portal.store.engine import open_database
from portal.store.tables import MountList, UtcDateTime, WordTuple
from tests.support.postgresql import PostgreSQL
from tests.support.site_config import write_config
from tests.support.stored_sessions import store_session


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A site's settings in a folder of the test."""
    return write_config(tmp_path)


@pytest.fixture
def state(config: str, tmp_path: Path) -> Path:
    """The state directory of a portal with a session."""
    assert main(["--config", config, "init"]) == 0
    store_session(tmp_path / "state")
    return tmp_path / "state"


@pytest.fixture
def target(postgresql: PostgreSQL) -> str:
    return postgresql.new_database(empty=True)


def content(url: str) -> dict[str, list[tuple[object, ...]]]:
    """All rows, as the stores read them."""
    engine = open_database(url)
    try:
        with engine.execution_options(read_only=True).connect() as connection:
            return {
                table.name: sorted(map(tuple, connection.execute(table.select())), key=str)
                for table in database._tables()
            }
    finally:
        engine.dispose()


def direct(url: str) -> Engine:
    """A database whose connections are closed after use: the command refuses one in use."""
    return create_engine(url, poolclass=NullPool)


def move(config: str, url: str) -> int:
    return main(["--config", config, "move-database", url])


def point_to(config: str, url: str) -> None:
    file = Path(config)
    lines = re.sub(r"(?m)^database = .*\n", "", file.read_text())
    file.write_text(lines.replace("[state]\n", f'[state]\ndatabase = "{url}"\n'))


def test_there_and_back(
    config: str, state: Path, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f"sqlite:///{state}/slipway.db"
    before = content(source)
    assert move(config, target) == 0
    said = capsys.readouterr().out
    assert "1  session" in said
    assert content(target) == before == content(source)
    assert len(before["session"]) == 1
    point_to(config, target)
    assert move(config, source) == 1
    assert "has" in capsys.readouterr().err
    assert move(config, f"sqlite:///{tmp_path}/back.db") == 0
    assert content(f"sqlite:///{tmp_path}/back.db") == before


def test_generated_numbers_go_on(config: str, state: Path, target: str) -> None:
    assert move(config, target) == 0
    with direct(target).begin() as connection:
        for table in database._tables():
            column = table.autoincrement_column
            if column is None or table.name in ("cluster", "cluster_nodes", "lease"):
                continue
            question = text("SELECT pg_get_serial_sequence(:table, :column)")
            names = {"table": f'"{table.name}"', "column": column.name}
            sequence = connection.execute(question, names).scalar()
            highest = connection.execute(text(f'SELECT max("{column.name}") FROM "{table.name}"'))
            if sequence:
                following = connection.execute(text(f"SELECT nextval('{sequence}')")).scalar()
                assert following == (highest.scalar() or 0) + 1


def test_a_database_with_rows_is_not_touched(
    config: str, state: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with direct(url).begin() as connection:
        connection.execute(text("INSERT INTO ended_app VALUES ('x', 's', 'a', now())"))
    assert move(config, url) == 1
    assert "1 rows already; nothing was moved" in capsys.readouterr().err
    assert sum(row_counts(url).values()) == 1


def test_a_copy_that_fails_leaves_nothing(
    config: str,
    state: Path,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rows that were lost on the way are noticed before anything is committed."""
    with monkeypatch.context() as patch:
        patch.setattr(database, "_move_table", lambda *_words: None)
        assert move(config, target) == 1
        assert "not arrived completely; nothing was moved" in capsys.readouterr().err
    assert not any(row_counts(target).values())
    assert move(config, target) == 0


def test_a_portal_that_runs_is_refused(
    config: str, state: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with direct(target).connect() as connection:
        connection.execute(text("SELECT 1"))
        assert move(config, target) == 1
        assert "1 others are connected" in capsys.readouterr().err
    assert inspect(direct(target)).get_table_names() == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgres://slipway@/x", "the URL: postgres:// is not known"),
        ("nonsense", "the URL is not a database URL"),
        ("postgresql+psycopg://slipway:secret@127.0.0.1:9/x", "nothing was moved"),
    ],
)
def test_a_wrong_url(
    config: str, state: Path, url: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert move(config, url) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "secret" not in err


def test_itself(config: str, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert move(config, f"sqlite:///{state}/slipway.db") == 1
    assert "already" in capsys.readouterr().err


SAMPLES: list[tuple[type, object]] = [
    (UtcDateTime, datetime(2026, 11, 24, 12, 30, 15, 123456, UTC)),
    (WordTuple, ("one", "two")),
    (MountList, (Mount(folder="data", read_only=True),)),
    (JSON, ["a"]),
    (Boolean, True),
    (Integer, 7),
    (Float, 1.25),
    (LargeBinary, b"\0\1"),
]


def sample(column: Column[Any]) -> object:
    """A value that none of its defaults is."""
    if isinstance(column.type, Enum):
        kind = column.type
        return kind.enum_class[kind.enums[-1]] if kind.enum_class else kind.enums[-1]
    found = [value for kind, value in SAMPLES if isinstance(column.type, kind)]
    return found[0] if found else f"of {column.name}"


def test_each_table_arrives_with_each_column(config: str, state: Path, target: str) -> None:
    source = f"sqlite:///{state}/slipway.db"
    engine = open_database(source)
    with engine.begin() as connection:
        for table in database._tables():
            connection.execute(table.delete())
        for table in database._tables():
            row = {column.name: sample(column) for column in table.columns}
            connection.execute(table.insert().values(row))
    engine.dispose()
    before = content(source)
    assert {len(rows) for rows in before.values()} == {1}
    assert {"announcement", "heartbeat", "host", "lease", "removed"} <= before.keys()
    assert move(config, target) == 0
    assert content(target) == before
