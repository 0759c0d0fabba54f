"""Connects to the database, and migrates it to this version's schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event

from portal.store.failures import translate
from portal.store.urls import check_url

MIGRATIONS = Path(__file__).parent / "migrations"


_WRITERS = 7_541_972_201
"""The number of the advisory lock that writers on PostgreSQL hold."""
_POSTGRESQL = {
    "connect_timeout": 5,
    # A host that is gone must not hold locks for longer than others are willing to wait.
    "options": "-c lock_timeout=20s -c idle_in_transaction_session_timeout=10s",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

CheckWriter = Callable[[Connection], None]
"""Raises if this process must not write any more; called in each transaction that writes."""


def open_database(url: str, check_writer: CheckWriter | None = None) -> Engine:
    """Connect; SQLite in WAL mode, so that readers do not block the writer.

    On both databases one transaction that writes follows the other, and one that reads sees one
    state. Execution options: `read_only`; `unserialized` for single statements about rows that
    nobody else changes, which then wait for no other transaction (PostgreSQL).
    """
    check_url(url)
    sqlite = url.startswith("sqlite")
    # hide_parameters: database errors must not write users' data to the log.
    engine = create_engine(
        url,
        pool_pre_ping=not sqlite,
        hide_parameters=True,
        connect_args={} if sqlite else _POSTGRESQL,
    )
    event.listen(engine, "handle_error", translate)
    if sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite if sqlite else _begin_postgresql)
    if check_writer is not None:
        event.listen(engine, "begin", partial(_check_writer, check_writer))
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin transactions late, as readers, and fail to upgrade them to writers
    # under load; see _begin_sqlite.
    connection.isolation_level = None
    cursor = connection.cursor()
    # secure_delete: deleted content is overwritten, not just marked as free.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "busy_timeout=20000",
        "secure_delete=ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    # busy_timeout waits for the lock at the beginning, but not when upgrading later.
    read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


def _begin_postgresql(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("read_only", False):
        first = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    elif not options.get("unserialized", False):
        # As BEGIN IMMEDIATE does: what is read before it is written cannot change in between. The
        # first statement, so that the transaction sees all that earlier writers have committed.
        first = f"SELECT pg_advisory_xact_lock({_WRITERS})"
    else:
        return
    # Not by a cursor of the server's, which a connection may be set to read by.
    plain = {"stream_results": False, "yield_per": None}
    connection.exec_driver_sql(first, execution_options=plain)


def _check_writer(check: CheckWriter, connection: Connection) -> None:
    options = connection.get_execution_options()
    if not (options.get("read_only", False) or options.get("unserialized", False)):
        check(connection)


def upgrade(url: str) -> None:
    """Apply pending migrations. Idempotent."""
    check_url(url)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, "head")
