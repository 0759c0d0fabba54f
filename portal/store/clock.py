"""The database's own clock, which all portal hosts share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, func, literal

from portal.store.tables import UtcDateTime


def database_time(engine: Engine) -> Any:
    """The present, as an expression: of PostgreSQL; with SQLite, of this only host."""
    if engine.dialect.name == "postgresql":
        return func.clock_timestamp(type_=UtcDateTime)
    return literal(datetime.now(UTC), UtcDateTime)
