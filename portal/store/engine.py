"""Connects to the database, and migrates it to this version's schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, PoolProxiedConnection, create_engine, event, make_url
from sqlalchemy.exc import TimeoutError
from sqlalchemy.pool import QueuePool

from portal.errors import DatabaseUnavailable, PortalError
from portal.store.failures import translate
from portal.store.urls import check_url

MIGRATIONS = Path(__file__).parent / "migrations"
OLDEST_RELEASE = "0.2.0"
"""The release whose schema the first migration creates; older schemas cannot be migrated."""

_WRITERS = 7_541_972_201
"""Key of the advisory lock that writers hold on PostgreSQL."""
_POSTGRESQL = {
    "connect_timeout": 5,
    # A host that is down must not hold locks for longer than others wait for them.
    "options": "-c lock_timeout=20s -c idle_in_transaction_session_timeout=10s",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

_BULK_CACHE_KIB = 8192
"""With SQLite's usual 2 MB, changed pages of indexes are written and read again within a
transaction. A connection keeps its cache afterwards."""

CheckWriter = Callable[[Connection], None]
"""Called at the beginning of each writing transaction; raises if this process may not write."""


def open_database(url: str, check_writer: CheckWriter | None = None) -> Engine:
    """Connect; SQLite in WAL mode, so that readers do not block the writer.

    On both databases, writing transactions are serialized, and a reading one sees one snapshot.
    Execution options: `read_only`; `bulk` for transactions of many rows, which get a larger cache
    (SQLite); `unserialized` for single statements about rows that no other process changes, which
    then do not wait for other transactions (PostgreSQL).
    """
    check_url(url)
    sqlite = url.startswith("sqlite")
    # hide_parameters: database errors must not write users' data to the log.
    engine = create_engine(
        url,
        pool_pre_ping=not sqlite,
        hide_parameters=True,
        connect_args={} if sqlite else _POSTGRESQL,
        poolclass=_Pool,
        # Each thread may have a connection to a file: those that wait to write keep theirs, and
        # readers need none of the locks.
        max_overflow=-1 if sqlite else 10,
    )
    # Many rows in a statement: its triggers, and SQLite's journal of each, cost as much as a row.
    engine.dialect.use_insertmanyvalues_wo_returning = True
    event.listen(engine, "handle_error", translate)
    if sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite if sqlite else _begin_postgresql)
    if check_writer is not None:
        event.listen(engine, "begin", partial(_check_writer, check_writer))
    return engine


class _Pool(QueuePool):
    """Raises DatabaseUnavailable if all connections are used by other threads for too long."""

    def connect(self) -> PoolProxiedConnection:
        """A connection of the pool, or a new one."""
        try:
            return super().connect()
        except TimeoutError as error:
            raise DatabaseUnavailable from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin transactions late, as readers, and fail to upgrade them to writers
    # under load; see _begin_sqlite.
    connection.isolation_level = None
    cursor = connection.cursor()
    # secure_delete: deleted content is overwritten, not just marked as free. journal_size_limit:
    # the file of the WAL stays as large as it ever was otherwise. temp_store: what a statement with
    # a trigger may have to undo is in memory, not in a file for each statement.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "busy_timeout=20000",
        "secure_delete=ON",
        "journal_size_limit=67108864",
        "temp_store=MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    # busy_timeout waits for the lock at the beginning, but not when upgrading later.
    options = connection.get_execution_options()
    connection.exec_driver_sql("BEGIN" if options.get("read_only", False) else "BEGIN IMMEDIATE")
    if options.get("bulk", False):
        connection.exec_driver_sql(f"PRAGMA cache_size=-{_BULK_CACHE_KIB}")


def _begin_postgresql(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("read_only", False):
        first = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    elif not options.get("unserialized", False):
        # As BEGIN IMMEDIATE does: a row cannot change between its reading and its writing. This is
        # the first statement, so that the transaction sees all commits of earlier writers.
        first = f"SELECT pg_advisory_xact_lock({_WRITERS})"
    else:
        return
    # Without a server-side cursor, which the connection's options may ask for.
    plain = {"stream_results": False, "yield_per": None}
    connection.exec_driver_sql(first, execution_options=plain)


def _check_writer(check: CheckWriter, connection: Connection) -> None:
    options = connection.get_execution_options()
    if not (options.get("read_only", False) or options.get("unserialized", False)):
        check(connection)


class SchemaTooOld(PortalError):
    """The database must be upgraded through OLDEST_RELEASE first."""


def newest() -> str:
    """The schema revision of this release."""
    return _scripts().get_current_head() or ""


def is_known(revision: str) -> bool:
    """Whether this release can migrate from a schema revision."""
    return revision in {script.revision for script in _scripts().walk_revisions()}


def is_too_old(revision: str) -> bool:
    """Whether a schema revision is from before OLDEST_RELEASE."""
    # Revisions are numbers of four digits.
    return bool(revision) and not is_known(revision) and revision < newest()


def check_schema(url: str) -> None:
    """Raise SchemaTooOld if this release cannot migrate the database any more."""
    if is_too_old(revision := revision_of(url)):
        raise SchemaTooOld(
            f"The database's schema, {revision}, is older than that of release {OLDEST_RELEASE}, "
            f"and was not changed. Install {OLDEST_RELEASE} and run `slipway init`, then install "
            "this release."
        )


def revision_of(url: str) -> str:
    """The schema revision of a database; "" before its first migration."""
    file = sqlite_file(url)
    if file is not None and not file.exists():
        return ""
    engine = open_database(url)
    try:
        with engine.execution_options(read_only=True).connect() as connection:
            return MigrationContext.configure(connection).get_current_revision() or ""
    finally:
        engine.dispose()


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; None for any other database."""
    parts = make_url(url)
    is_file = parts.get_backend_name() == "sqlite" and parts.database
    return Path(parts.database) if is_file and parts.database else None


def upgrade(url: str) -> None:
    """Apply pending migrations. Idempotent. Raises SchemaTooOld, without a change."""
    check_url(url)
    check_schema(url)
    command.upgrade(_config(url), "head")


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config("sqlite://"))


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config
