"""Maps drivers' errors to DatabaseFull and DatabaseUnavailable."""

from __future__ import annotations

import logging
import sqlite3
from typing import Any

from sqlalchemy.engine import ExceptionContext

from portal.errors import DatabaseFull, DatabaseUnavailable
from portal.logs.throttle import LogThrottle

log = logging.getLogger(__name__)

_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
_AWAY = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
_FULL_STATES = ("53100", "25006")
"""PostgreSQL: disk_full, read_only_sql_transaction."""
_AWAY_STATES = ("08", "57P", "53", "55P03")
"""Prefixes: no connection, shutting down, no connections or memory left, lock timeout."""
_throttle = LogThrottle()


def translate(context: ExceptionContext) -> None:
    """SQLAlchemy's `handle_error`: raise DatabaseFull or DatabaseUnavailable.

    Errors of a statement remain SQLAlchemy's. Logs one line a minute.
    """
    if context.is_pre_ping:
        return  # the pool replaces this connection
    error = context.original_exception
    meant = meaning(error, context.is_disconnect)
    if meant is None:
        return
    if _throttle(meant.title):
        log.error("the database: %s (%s)", meant.title.lower(), " ".join(str(error).split()))
    raise meant from error


def meaning(error: BaseException, disconnected: bool = False) -> DatabaseUnavailable | None:
    """The portal's error for a driver's; None if the statement is at fault."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended part
        if code in _FULL:
            return DatabaseFull()
        return DatabaseUnavailable() if code in _AWAY else None
    state: Any = getattr(error, "sqlstate", None)
    if state in _FULL_STATES:
        return DatabaseFull()
    unreachable = state is None and type(error).__name__ == "OperationalError"
    if disconnected or unreachable or str(state).startswith(_AWAY_STATES):
        return DatabaseUnavailable()
    return None
