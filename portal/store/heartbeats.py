"""Heartbeats in the database."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, select, update

from portal.store.reading import reading
from portal.store.tables import HeartbeatRow


class HeartbeatStore:
    """Heartbeats of processes. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def beat(self, name: str, now: datetime) -> None:
        """Store a heartbeat; raises DatabaseUnavailable, or its subclass DatabaseFull."""
        # Another process may insert the row at the same moment.
        with suppress(IntegrityError), Database(self._engine) as db:
            statement = update(HeartbeatRow).where(col(HeartbeatRow.name) == name)
            if db.exec(statement.values(beaten=now)).rowcount == 0:
                db.add(HeartbeatRow(name=name, beaten=now))
            db.commit()

    def beats(self) -> dict[str, datetime]:
        """The time of each last heartbeat, by name."""
        with reading(self._readers) as db:
            rows = db.exec(select(HeartbeatRow)).all()
            return {row.name: row.beaten for row in rows if row.beaten is not None}
