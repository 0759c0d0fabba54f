"""Connects to the database, and migrates it to this version's schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event

from portal.adapters.db.monitoring.failures import translate
from portal.adapters.db.urls import check_url

MIGRATIONS = Path(__file__).parent / "migrations"


def open_database(url: str) -> Engine:
    """Connect; SQLite in WAL mode, so that readers do not block the writer."""
    check_url(url)
    # hide_parameters: database errors must not write users' data to the log.
    engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"), hide_parameters=True)
    event.listen(engine, "handle_error", translate)
    if url.startswith("sqlite"):
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin transactions late, as readers, and fail to upgrade them to writers
    # under load; see _begin_immediate.
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


def _begin_immediate(connection: Any) -> None:
    # busy_timeout waits for the lock at the beginning, but not when upgrading later.
    read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


def upgrade(url: str) -> None:
    """Apply pending migrations. Idempotent."""
    check_url(url)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, "head")
