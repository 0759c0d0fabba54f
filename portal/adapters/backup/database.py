"""Consistent copies of a SQLite or PostgreSQL database as one SQLite file.

SQLite is copied by its backup API. All tables of PostgreSQL are read in one REPEATABLE READ
transaction: pg_dump would have to be installed in a version that fits the server, and its output
could be restored into PostgreSQL only.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

from sqlalchemy import (
    Connection,
    Engine,
    Integer,
    Table,
    func,
    insert,
    inspect,
    select,
    text,
)

from portal.store import tables
from portal.store.engine import newest, open_database, revision_of, sqlite_file, upgrade

KEPT = 5
"""Number of copies from before migrations that are kept."""
ROWS = 500
"""Rows in memory at once."""


class CopyFailed(Exception):
    """The database cannot be copied; the text says why."""


def copy_database(url: str, target: Path) -> str:
    """Copy a database that may be in use to a new SQLite file; returns its schema revision.

    Raises CopyFailed.
    """
    source = sqlite_file(url)
    if source is not None:
        if not source.exists():
            raise CopyFailed(f"{source} does not exist: run `slipway init`")
        _copy_sqlite(source, target)
    else:
        revision = revision_of(url)
        if revision != newest():
            actual = revision or "none"
            raise CopyFailed(
                f"the database has schema {actual}, this release {newest()}: run `slipway init`"
            )
        upgrade(f"sqlite:///{target}")
        _move_rows(url, f"sqlite:///{target}")
        settle(target)
    return revision_of(f"sqlite:///{target}")


def _copy_sqlite(source: Path, target: Path) -> None:
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.close(descriptor)
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=20)) as connection,
        closing(sqlite3.connect(target)) as copy,
    ):
        # In one step: writes of the portal would restart a copy in several steps.
        connection.backup(copy, pages=-1)
    settle(target)


def settle(target: Path) -> None:
    """Turn a copy into one file without a write-ahead log, and check its integrity."""
    with closing(sqlite3.connect(target)) as copy:
        copy.execute("PRAGMA journal_mode=DELETE")
        check = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if check != "ok":
        raise CopyFailed(f"the database is damaged: {check}")


def load_database(source: Path, url: str) -> None:
    """Replace all rows of a non-SQLite database by those of a copy, in one transaction."""
    upgrade(url)
    _move_rows(f"sqlite:///{source}", url)


def move_database(source: str, target: str) -> dict[str, int]:
    """Copy all rows to an empty database in one transaction; returns the row count of each table.

    Raises CopyFailed; then only the target's schema may have changed.
    """
    revision = revision_of(source)
    if revision != newest():
        text = f"the database has schema {revision or 'none'}, this release {newest()}"
        raise CopyFailed(f"{text}: run `slipway init`")
    if revision_of(target) and any(counts := row_counts(target).values()):
        raise CopyFailed(f"the target has {sum(counts)} rows already")
    upgrade(target)
    return _move_rows(source, target)


def row_counts(url: str) -> dict[str, int]:
    """The row count of each of the portal's existing tables."""
    engine = open_database(url)
    try:
        with engine.execution_options(read_only=True).connect() as connection:
            existing = set(inspect(connection).get_table_names())
            return {
                table.name: _count(connection, table)
                for table in _tables()
                if table.name in existing
            }
    finally:
        engine.dispose()


def _count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar() or 0)


def is_empty(url: str) -> bool:
    """Whether a database has no sessions and no logins yet."""
    if not revision_of(url):
        return True
    engine = open_database(url)
    try:
        with engine.execution_options(read_only=True).connect() as connection:
            rows = (tables.SessionRow, tables.LoginRow)
            return not any(connection.execute(select(row).limit(1)).first() for row in rows)
    finally:
        engine.dispose()


def other_users(url: str) -> int:
    """The number of other connections to a PostgreSQL database, such as portals on any host."""
    engine = open_database(url)
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    try:
        if engine.dialect.name != "postgresql":
            return 0
        with engine.connect() as connection:
            excluding_own = " AND pid <> pg_backend_pid()"
            return int(connection.execute(text(query + excluding_own)).scalar() or 0)
    finally:
        engine.dispose()


def _tables() -> list[Table]:
    """All tables with content, referenced ones before those that refer to them.

    Counts of changes are not copied: the target's triggers count the rows that are.
    """
    counts = tables.ChangeCountRow.__tablename__
    return [table for table in tables.SessionRow.metadata.sorted_tables if table.name != counts]


def _move_rows(source: str, target: str) -> dict[str, int]:
    """Replace all rows of the target; returns the row count of each table."""
    counts = {}
    reading, writing = open_database(source), open_database(target)
    try:
        with reading.connect().execution_options(read_only=True) as old, writing.begin() as new:
            for table in reversed(_tables()):
                new.execute(table.delete())
            for table in _tables():
                _move_table(old, new, table)
                _set_sequence(writing, new, table)
                counts[table.name] = _count(new, table)
                if counts[table.name] != _count(old, table):
                    raise CopyFailed(f"the table {table.name} has not arrived completely")
    finally:
        reading.dispose()
        writing.dispose()
    return counts


def _move_table(old: Connection, new: Connection, table: Table) -> None:
    streaming = old.execution_options(stream_results=True, yield_per=ROWS)
    for part in streaming.execute(select(table)).mappings().partitions(ROWS):
        new.execute(insert(table), [dict(row) for row in part])


def _set_sequence(engine: Engine, new: Connection, table: Table) -> None:
    """Set a sequence so that the next generated id follows the inserted ones."""
    column = table.autoincrement_column
    if engine.dialect.name != "postgresql" or column is None:
        return
    if not isinstance(column.type, Integer):
        return
    highest_id = new.execute(select(func.max(column))).scalar()
    query = text("SELECT pg_get_serial_sequence(:table, :column)")
    names = {"table": f'"{table.name}"', "column": column.name}
    sequence = new.execute(query, names).scalar()
    if sequence:
        values = {"sequence": sequence, "next": (highest_id or 0) + 1}
        new.execute(text("SELECT setval(:sequence, :next, false)"), values)


def keep_copy(url: str, folder: Path, now: datetime) -> Path | None:
    """Copy a SQLite database before its migration; None if no copy is needed.

    The newest KEPT copies are kept.
    """
    source = sqlite_file(url)
    revision = revision_of(url)
    if source is None or revision in ("", newest()):
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"slipway-{revision}-{now:%Y%m%dT%H%M%SZ}.db"
    draft = folder / f".{target.name}.{secrets.token_hex(4)}"
    try:
        _copy_sqlite(source, draft)
        sync(draft)
        draft.replace(target)
        sync(folder)
    finally:
        draft.unlink(missing_ok=True)
    copies = sorted(folder.glob("slipway-*.db"), key=lambda file: file.stat().st_mtime)
    for old in copies[:-KEPT]:
        old.unlink(missing_ok=True)
    return target


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
