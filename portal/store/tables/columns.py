"""Column types."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect
from sqlalchemy.types import TypeDecorator
from sqlmodel import AutoString, Field

from portal.core.launch.mounts import Mount


class UtcDateTime(TypeDecorator[datetime]):
    """Stores times in UTC; SQLite alone would lose the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; raises ValueError for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Add the zone, where the database has none (SQLite)."""
        if not isinstance(value, datetime):
            return None
        if value.tzinfo is None:
            return value.replace(tzinfo=UTC)
        return value.astimezone(UTC)  # PostgreSQL answers in the zone of its server


class WordTuple(TypeDecorator[tuple[str, ...]]):
    """Stores words without spaces as one text."""

    impl = AutoString
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> str:
        """Join them."""
        return " ".join(value or ())

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...]:
        """Split them."""
        return tuple(value.split()) if value else ()


class MountList(TypeDecorator[tuple[Mount, ...]]):
    """Stores mounts as JSON."""

    impl = AutoString
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        """Write them; a row created from a session's dump has them as dictionaries."""
        return json.dumps([dict(mount) for mount in value or ()])

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[Mount, ...]:
        """Read them."""
        return tuple(Mount(**mount) for mount in json.loads(value or "[]"))


def time_column(**options: Any) -> Any:
    """A column of times in UTC; options as for sqlmodel.Field."""
    return Field(sa_type=UtcDateTime, **options)
