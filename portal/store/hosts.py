"""The portal's hosts, their confirmations of revocations, and the worker's lease.

Times are those of the database's own clock, which all hosts share.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, and_, func, literal, text
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.hosts import FORGET_SECONDS, LEASE_SECONDS, Holder, HostStatus, Removal, View
from portal.core.session.idle import Traffic
from portal.errors import PortalError
from portal.store.reading import reading
from portal.store.tables import HostRow, LeaseRow, PendingRemovalRow, RemovedRow, UtcDateTime


def database_time(engine: Engine) -> Any:
    """The current time as an expression: PostgreSQL's clock; with SQLite, this host's."""
    if engine.dialect.name == "postgresql":
        return func.clock_timestamp(type_=UtcDateTime)
    return literal(datetime.now(UTC), UtcDateTime)


class HostStore:
    """The portal's hosts, and the revocations that each has carried out.

    A host writes its own rows without waiting for other transactions, because it is shut off if it
    does not report in time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)
        self._unserialized = engine.execution_options(unserialized=True)

    @property
    def _now(self) -> Any:
        return database_time(self._engine)

    def view(self, host: str) -> View:
        """A host's last report, and the revocations that it has not confirmed."""
        with reading(self._readers) as db:
            query = select(HostRow.seen, HostRow.machine, self._now)
            row = db.exec(query.where(col(HostRow.name) == host)).first()
            pending = tuple(_pending(db, host))
        if row is None:
            return View(None, "", pending)
        reported, machine, now = row
        return View(_seconds(reported, now), machine, pending)

    def report(self, host: str, machine: str) -> None:
        """Store that a host follows the database; valid for SHUT_SECONDS."""
        values = {"machine": machine, "seen": self._now}
        self._change(host, values, HostRow(name=host, machine=machine, seen=datetime.min))

    def note_traffic(self, host: str, traffic: Mapping[str, Traffic]) -> None:
        """Store the traffic that a host's HAProxy has counted."""
        text = json.dumps({name: astuple(sent) for name, sent in traffic.items()})
        with Database(self._unserialized) as db:
            db.exec(update(HostRow).where(col(HostRow.name) == host).values(traffic=text))
            db.commit()

    def _change(self, host: str, values: Mapping[str, Any], new: HostRow) -> None:
        with Database(self._unserialized) as db:
            statement = update(HostRow).where(col(HostRow.name) == host).values(**values)
            if not db.exec(statement).rowcount:
                new.seen = db.exec(select(self._now)).one()
                db.add(new)
            try:
                db.commit()
            except IntegrityError:  # another process of this host has inserted the row
                db.rollback()

    def pending(self, host: str, keys: Collection[str]) -> list[Removal]:
        """The revocations of these keys that this host has not confirmed."""
        with reading(self._readers) as db:
            return _pending(db, host, col(PendingRemovalRow.key).in_(keys))

    def confirm(self, host: str, removals: Collection[Removal]) -> None:
        """Store that a host's HAProxy has removed these keys and cut their connections."""
        for removal in sorted(removals, key=lambda removal: removal.key):
            row = RemovedRow(key=removal.key, host=host, since=removal.since)
            try:
                with Database(self._unserialized) as db:
                    db.merge(row)
                    db.commit()
            except IntegrityError:  # another process of this host has inserted the row
                continue

    def unconfirmed(self, removals: Collection[Removal]) -> list[str]:
        """The hosts that may still serve one of these keys."""
        requested = {(removal.key, removal.since) for removal in removals}
        keys = {removal.key for removal in removals}
        with reading(self._readers) as db:
            rows = db.exec(
                select(PendingRemovalRow.key, PendingRemovalRow.since).where(
                    col(PendingRemovalRow.key).in_(keys)
                )
            )
            pending = requested & {(key, since) for key, since in rows}
            confirmed = _confirmed(db, keys)
            open_hosts = [host.name for host in self._hosts(db) if host.is_open]
        return [name for name in open_hosts if pending - confirmed.get(name, set())]

    def settle(self) -> None:
        """Delete the revocations that all open hosts have confirmed."""
        with reading(self._readers) as db:
            pending = db.exec(select(PendingRemovalRow.key).limit(1)).first()
            if pending is None and db.exec(select(RemovedRow.key).limit(1)).first() is None:
                return
        with Database(self._engine) as db:
            rows = list(db.exec(select(PendingRemovalRow)))
            confirmed = _confirmed(db, None)
            open_hosts = [host.name for host in self._hosts(db) if host.is_open]
            remaining = set()
            for row in rows:
                revocation = (row.key, row.since)
                if all(revocation in confirmed.get(name, set()) for name in open_hosts):
                    db.delete(row)
                else:
                    remaining.add(revocation)
            for host, revocations in confirmed.items():
                for key, since in revocations - remaining:
                    conditions = (col(RemovedRow.key) == key, col(RemovedRow.host) == host)
                    db.exec(delete(RemovedRow).where(*conditions, col(RemovedRow.since) == since))
            db.commit()

    def hosts(self) -> Sequence[HostStatus]:
        """All hosts that have reported within FORGET_SECONDS, by name."""
        with reading(self._readers) as db:
            return self._hosts(db)

    def _hosts(self, db: Database) -> list[HostStatus]:
        rows = db.exec(select(HostRow, self._now).order_by(col(HostRow.name)))
        hosts = [
            HostStatus(row.name, _seconds(row.seen, now), _traffic(row.traffic))
            for row, now in rows
        ]
        return [host for host in hosts if host.silent < FORGET_SECONDS]


def _pending(db: Database, host: str, *conditions: Any) -> list[Removal]:
    is_removed = and_(
        col(RemovedRow.key) == col(PendingRemovalRow.key),
        col(RemovedRow.host) == host,
        col(RemovedRow.since) == col(PendingRemovalRow.since),
    )
    query = select(PendingRemovalRow.key, PendingRemovalRow.since).where(
        *conditions, ~select(RemovedRow.key).where(is_removed).exists()
    )
    return [Removal(key, since) for key, since in db.exec(query)]


def _confirmed(db: Database, keys: Collection[str] | None) -> dict[str, set[tuple[str, datetime]]]:
    """The confirmed revocations (key and time) by host; of these keys, or all."""
    query = select(RemovedRow)
    if keys is not None:
        query = query.where(col(RemovedRow.key).in_(keys))
    confirmed: dict[str, set[tuple[str, datetime]]] = {}
    for row in db.exec(query):
        confirmed.setdefault(row.host, set()).add((row.key, row.since))
    return confirmed


def _seconds(seen: datetime, now: datetime) -> float:
    return max((now - seen).total_seconds(), 0.0)


def _traffic(text: str) -> dict[str, Traffic]:
    return {name: Traffic(*counts) for name, counts in json.loads(text).items()}


class LeaseLost(PortalError):
    """Another worker has taken the lease, so this one may not write."""


class Fence:
    """Refuses transactions that write, unless this process has the lease.

    Writers are serialized (store/engine.py), and taking the lease is one of them: after it, no
    transaction of the earlier holder is committed.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    def take(self, number: int) -> None:
        """Set the number of the lease that this process has acquired."""
        self.number = number

    def check(self, connection: Connection) -> None:
        """Raise LeaseLost unless the lease still has this number."""
        number = connection.execute(text("SELECT number FROM lease WHERE id = 1")).scalar()
        if self.number is None or number != self.number:
            raise LeaseLost("Another worker has taken over.")


class LeaseStore:
    """The lease of the one worker that acts for all hosts."""

    def __init__(self, engine: Engine, *, forced: bool = False) -> None:
        """With `forced`, the caller holds another lock, and the row only names the holder."""
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)
        self._unserialized = engine.execution_options(unserialized=True)
        self._forced = forced

    def acquire(self, host: str, pid: int) -> int | None:
        """Take the lease if it is free or its holder has expired; its number, or None."""
        with Database(self._engine) as db:
            stored = db.exec(select(LeaseRow).with_for_update()).first()
            time = db.exec(select(database_time(self._engine))).one()
            row = stored or LeaseRow(since=time)
            is_held = row.renewed is not None and _seconds(row.renewed, time) < LEASE_SECONDS
            if is_held and not self._forced:
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
        with Database(self._unserialized) as db:
            statement = update(LeaseRow).where(col(LeaseRow.number) == number)
            result = db.exec(statement.values(renewed=renewed))
            db.commit()
            return bool(result.rowcount)

    def holder(self) -> Holder | None:
        """The worker that has the lease, also if it has expired; None if it was released."""
        with reading(self._readers) as db:
            result = db.exec(select(LeaseRow, database_time(self._engine))).first()
        if result is None or result[0].renewed is None:
            return None
        row, now = result
        return Holder(row.host, row.pid, row.since, _seconds(row.renewed or now, now))
