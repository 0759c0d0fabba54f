"""The store: sessions, launch keys and what is known of the cluster, in an SQL database.

Changes to a session compare its state first, in the same statement: the web application, the
worker and a runner's call may all touch one row in the same second, and none overwrites another.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Engine, create_engine, event, func, tuple_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.adapters.tables import ClusterRow, LaunchKeyRow, SessionRow
from portal.core.job import Partition
from portal.core.limits import Limits
from portal.core.ports import SlurmStatus
from portal.core.session import LIVE, OVER, Session, State
from portal.core.usage import Use
from portal.errors import Conflict, FieldError, InvalidRequest


def open_database(url: str) -> Engine:
    """Connect; SQLite is told to let readers and one writer work side by side."""
    engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    if url.startswith("sqlite"):
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction handling would start them late, as readers, and then fail to
    # turn them into writers under load; see _begin_immediate.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=20000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    # Waiting for the lock at the start is what busy_timeout can do; upgrading later is not.
    read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


class Store:
    """SessionStore and StatusStore over SQLModel."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    # Sessions

    def add(self, session: Session, key: str | None, fingerprint: str) -> tuple[Session, bool]:
        """Store a new session, or return (earlier one, False) for the owner's same key."""
        try:
            with Database(self._engine) as db:
                if key is not None:
                    db.add(
                        LaunchKeyRow(
                            owner=session.owner,
                            key=key,
                            session=session.id,
                            fingerprint=fingerprint,
                        )
                    )
                    db.flush()
                db.add(SessionRow(**session.model_dump()))
                db.commit()
        except IntegrityError:
            if key is None:
                raise
            return self._earlier(session.owner, key, fingerprint), False
        return session, True

    def _earlier(self, owner: str, key: str, fingerprint: str) -> Session:
        with Database(self._readers) as db:
            row = db.get(LaunchKeyRow, (owner, key))
            found = db.get(SessionRow, row.session) if row else None
            if row is None or found is None:
                raise Conflict("A launch with this key was just refused. Use a new key.")
            if row.fingerprint != fingerprint:
                raise Conflict("This Idempotency-Key was used for a different request.")
            return _session(found)

    def get(self, session: str) -> Session | None:
        """One session."""
        with Database(self._readers) as db:
            row = db.get(SessionRow, session)
            return _session(row) if row else None

    def change(self, session: str, when: Collection[State], **changes: object) -> Session | None:
        """Change a session if it is in one of these states; None when it was not."""
        with Database(self._engine) as db:
            done = db.exec(
                update(SessionRow)
                .where(col(SessionRow.id) == session, col(SessionRow.state).in_(when))
                .values(**changes)
            )
            row = db.get(SessionRow, session) if done.rowcount else None
            result = _session(row) if row else None
            db.commit()
            return result

    def forget(self, session: str) -> None:
        """Remove a session that never came to be, and its key with it."""
        with Database(self._engine) as db:
            db.exec(delete(LaunchKeyRow).where(col(LaunchKeyRow.session) == session))
            db.exec(delete(SessionRow).where(col(SessionRow.id) == session))
            db.commit()

    def live(self) -> list[Session]:
        """All sessions that are not over."""
        return self._where(col(SessionRow.state).in_(LIVE))

    def unclean(self) -> list[Session]:
        """All that are over and still have files."""
        return self._where(col(SessionRow.state).in_(OVER), col(SessionRow.cleaned).is_(False))

    def _where(self, *conditions: Any) -> list[Session]:
        with Database(self._readers) as db:
            return [_session(row) for row in db.exec(select(SessionRow).where(*conditions))]

    def listing(
        self, owner: str | None, states: Collection[State], limit: int, cursor: str | None
    ) -> tuple[list[Session], str | None]:
        """Newest first, a page at a time; the second value is the next page's cursor."""
        query = select(SessionRow).where(col(SessionRow.state).in_(states))
        if owner is not None:
            query = query.where(col(SessionRow.owner) == owner)
        if cursor is not None:
            position = tuple_(col(SessionRow.created), col(SessionRow.id))
            query = query.where(position < tuple_(*_read_cursor(cursor)))
        order = (col(SessionRow.created).desc(), col(SessionRow.id).desc())
        with Database(self._readers) as db:
            rows = db.exec(query.order_by(*order).limit(limit + 1)).all()
            page = [_session(row) for row in rows[:limit]]
        return page, _cursor(page[-1]) if len(rows) > limit else None

    # Status

    def note_answer(self, now: datetime) -> None:
        """Slurm answered."""
        self._cluster(answered=now, failing_since=None, message="")

    def note_failure(self, now: datetime, message: str) -> None:
        """Slurm did not answer; the first failure's time is kept."""
        since = func.coalesce(col(ClusterRow.failing_since), now)
        self._cluster(failing_since=since, message=message)

    def _cluster(self, **values: Any) -> None:
        with Database(self._engine) as db:
            if not db.get(ClusterRow, 1):
                db.add(ClusterRow(id=1))
                db.flush()
            db.exec(update(ClusterRow).values(**values))
            db.commit()

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1) or ClusterRow()
            return SlurmStatus(row.answered, row.failing_since, row.message)

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Keep the partitions for everybody."""
        self._cluster(partitions=json.dumps([asdict(partition) for partition in partitions]))

    def partitions(self) -> list[Partition]:
        """The partitions as last read; [] before the first time."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return [Partition(**data) for data in json.loads(row.partitions)] if row else []

    def save_limits(self, limits: Limits) -> None:
        """Keep Slurm's limits for everybody."""
        self._cluster(limits=_LIMITS.dump_json(limits).decode())

    def limits(self) -> Limits | None:
        """The limits as last read; None before the first time."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _limits(row.limits) if row and row.limits else None

    def save_use(self, use: Use) -> None:
        """Keep who holds what at this look."""
        self._cluster(use=_USE.dump_json(use).decode())

    def use(self) -> Use:
        """Who held what at the last look."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _USE.validate_json(row.use) if row and row.use else Use()


_LIMITS = TypeAdapter(Limits)
_USE = TypeAdapter(Use)


@lru_cache(maxsize=2)
def _limits(text: str) -> Limits:
    # Large sites have thousands of associations, and pages ask every two seconds.
    return _LIMITS.validate_json(text)


def _session(row: SessionRow) -> Session:
    return Session.model_validate(row, from_attributes=True)


def _cursor(last: Session) -> str:
    return base64.urlsafe_b64encode(f"{last.created.isoformat()} {last.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        created, _, identifier = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return datetime.fromisoformat(created), identifier
    except (ValueError, binascii.Error):
        problem = FieldError("cursor", "use the cursor of an earlier answer")
        raise InvalidRequest([problem]) from None
