"""The lease of the one worker that acts for all hosts, and its fence."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Engine, text
from sqlmodel import Session as Database
from sqlmodel import col, select, update

from portal.core.hosts import LEASE_SECONDS, Holder
from portal.errors import PortalError
from portal.store.clock import database_time
from portal.store.reading import reading
from portal.store.tables import LeaseRow


class LeaseLost(PortalError):
    """Another worker has taken the lease, so this one may not write."""


class Fence:
    """Refuses transactions that write, unless this process has the lease.

    Writers follow each other (store/engine.py), and so does the one that takes the lease:
    after it, no transaction of the earlier holder is committed.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    def take(self, number: int) -> None:
        """From now on this process has the lease of this number."""
        self.number = number

    def check(self, connection: Connection) -> None:
        """Raise LeaseLost unless the lease still has this number."""
        found = connection.execute(text("SELECT number FROM lease WHERE id = 1")).scalar()
        if self.number is None or found != self.number:
            raise LeaseLost("Another worker has taken over.")


class LeaseStore:
    """The lease of the one worker that acts for all hosts."""

    def __init__(self, engine: Engine, *, forced: bool = False) -> None:
        """`forced`: the caller holds another lock, so that the row only shows who does."""
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)
        self._own = engine.execution_options(unserialized=True)
        self._forced = forced

    def acquire(self, host: str, pid: int) -> int | None:
        """Take the lease if it is free or its holder is silent; its number, or None."""
        with Database(self._engine) as db:
            found = db.exec(select(LeaseRow).with_for_update()).first()
            time = db.exec(select(database_time(self._engine))).one()
            row = found or LeaseRow(since=time)
            held = row.renewed is not None and _seconds(row.renewed, time) < LEASE_SECONDS
            if held and not self._forced:
                return None
            row.number += 1
            row.host, row.pid, row.since, row.renewed = host, pid, time, time
            number = row.number
            db.add(row)
            db.commit()
            return number

    def renew(self, number: int) -> bool:
        """Keep the lease; False if another worker has it."""
        return self._set(number, database_time(self._engine))

    def release(self, number: int) -> None:
        """Give the lease back, if this worker has it."""
        self._set(number, None)

    def _set(self, number: int, renewed: object) -> bool:
        with Database(self._own) as db:
            which = update(LeaseRow).where(col(LeaseRow.number) == number)
            done = db.exec(which.values(renewed=renewed))
            db.commit()
            return bool(done.rowcount)

    def holder(self) -> Holder | None:
        """The worker that has the lease, or had it and is silent; None if it was given back."""
        with reading(self._readers) as db:
            found = db.exec(select(LeaseRow, database_time(self._engine))).first()
        if found is None or found[0].renewed is None:
            return None
        row, now = found
        return Holder(row.host, row.pid, row.since, _seconds(row.renewed or now, now))


def _seconds(seen: datetime, now: datetime) -> float:
    return max((now - seen).total_seconds(), 0.0)
