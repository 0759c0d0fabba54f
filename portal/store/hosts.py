"""The portal's hosts, and which of them have carried out which revocation."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, and_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.hosts import FORGET_SECONDS, HostStatus, Removal, View
from portal.core.session.idle import Traffic
from portal.store.clock import database_time
from portal.store.reading import reading
from portal.store.tables import HostRow, PendingRemovalRow, RemovedRow


class HostStore:
    """The portal's hosts, and the revocations that each has carried out.

    A host's own rows are written without waiting for other transactions: a host that cannot report
    in time is shut off.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)
        self._own = engine.execution_options(unserialized=True)

    @property
    def _now(self) -> Any:
        return database_time(self._engine)

    def look(self, host: str) -> View:
        """What a host has to know, in one query."""
        with reading(self._readers) as db:
            which = col(HostRow.name) == host
            row = db.exec(select(HostRow.seen, HostRow.machine, self._now).where(which)).first()
            pending = tuple(_pending(db, host))
        if row is None:
            return View(None, "", pending)
        seen, machine, now = row
        return View(_seconds(seen, now), machine, pending)

    def report(self, host: str, machine: str) -> None:
        """Note that a host follows the database, from now on for SHUT_SECONDS."""
        values = {"machine": machine, "seen": self._now}
        self._change(host, values, HostRow(name=host, machine=machine, seen=datetime.min))

    def note_traffic(self, host: str, traffic: Mapping[str, Traffic]) -> None:
        """Store what a host's HAProxy has counted."""
        text = json.dumps({name: astuple(sent) for name, sent in traffic.items()})
        with Database(self._own) as db:
            db.exec(update(HostRow).where(col(HostRow.name) == host).values(traffic=text))
            db.commit()

    def _change(self, host: str, values: Mapping[str, Any], new: HostRow) -> None:
        with Database(self._own) as db:
            which = update(HostRow).where(col(HostRow.name) == host).values(**values)
            if not db.exec(which).rowcount:
                new.seen = db.exec(select(self._now)).one()
                db.add(new)
            try:
                db.commit()
            except IntegrityError:  # the same, by another process of this host
                db.rollback()

    def pending(self, host: str, keys: Collection[str]) -> list[Removal]:
        """Those of these keys that are revoked and that this host has not confirmed."""
        with reading(self._readers) as db:
            return _pending(db, host, col(PendingRemovalRow.key).in_(keys))

    def confirm(self, host: str, removals: Collection[Removal]) -> None:
        """Note that a host's HAProxy has removed these keys and cut their connections."""
        for removal in sorted(removals, key=lambda removal: removal.key):
            row = RemovedRow(key=removal.key, host=host, since=removal.since)
            try:
                with Database(self._own) as db:
                    db.merge(row)
                    db.commit()
            except IntegrityError:  # the same, by another process of this host
                continue

    def unconfirmed(self, removals: Collection[Removal]) -> list[str]:
        """The hosts that may still serve one of these keys."""
        wanted = {(removal.key, removal.since) for removal in removals}
        keys = {removal.key for removal in removals}
        with reading(self._readers) as db:
            rows = db.exec(
                select(PendingRemovalRow.key, PendingRemovalRow.since).where(
                    col(PendingRemovalRow.key).in_(keys)
                )
            )
            left = wanted & {(key, since) for key, since in rows}
            confirmed = _confirmed(db, keys)
            open_hosts = [host.name for host in self._hosts(db) if host.is_open]
        return [name for name in open_hosts if left - confirmed.get(name, set())]

    def settle(self) -> None:
        """Forget the revocations that no host serves any more."""
        with reading(self._readers) as db:
            pending = db.exec(select(PendingRemovalRow.key).limit(1)).first()
            if pending is None and db.exec(select(RemovedRow.key).limit(1)).first() is None:
                return
        with Database(self._engine) as db:
            rows = list(db.exec(select(PendingRemovalRow)))
            confirmed = _confirmed(db, None)
            open_hosts = [host.name for host in self._hosts(db) if host.is_open]
            left = set()
            for row in rows:
                mark = (row.key, row.since)
                if all(mark in confirmed.get(name, set()) for name in open_hosts):
                    db.delete(row)
                else:
                    left.add(mark)
            for host, marks in confirmed.items():
                for key, since in marks - left:
                    which = (col(RemovedRow.key) == key, col(RemovedRow.host) == host)
                    db.exec(delete(RemovedRow).where(*which, col(RemovedRow.since) == since))
            db.commit()

    def hosts(self) -> Sequence[HostStatus]:
        """All hosts that were seen lately, by name."""
        with reading(self._readers) as db:
            return self._hosts(db)

    def _hosts(self, db: Database) -> list[HostStatus]:
        rows = db.exec(select(HostRow, self._now).order_by(col(HostRow.name)))
        found = [
            HostStatus(row.name, _seconds(row.seen, now), _traffic(row.traffic))
            for row, now in rows
        ]
        return [host for host in found if host.silent < FORGET_SECONDS]


def _pending(db: Database, host: str, *which: Any) -> list[Removal]:
    done = and_(
        col(RemovedRow.key) == col(PendingRemovalRow.key),
        col(RemovedRow.host) == host,
        col(RemovedRow.since) == col(PendingRemovalRow.since),
    )
    query = select(PendingRemovalRow.key, PendingRemovalRow.since).where(
        *which, ~select(RemovedRow.key).where(done).exists()
    )
    return [Removal(key, since) for key, since in db.exec(query)]


def _confirmed(db: Database, keys: Collection[str] | None) -> dict[str, set[tuple[str, datetime]]]:
    """What each host has confirmed."""
    query = select(RemovedRow)
    if keys is not None:
        query = query.where(col(RemovedRow.key).in_(keys))
    found: dict[str, set[tuple[str, datetime]]] = {}
    for row in db.exec(query):
        found.setdefault(row.host, set()).add((row.key, row.since))
    return found


def _seconds(seen: datetime, now: datetime) -> float:
    return max((now - seen).total_seconds(), 0.0)


def _traffic(text: str) -> dict[str, Traffic]:
    return {name: Traffic(*counts) for name, counts in json.loads(text).items()}
