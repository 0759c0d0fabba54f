"""The cluster's last known status: one row, values as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Engine, func
from sqlmodel import Session as Database
from sqlmodel import col, select, update

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.monitoring import WORKER
from portal.core.session.idle import TrafficSample
from portal.store.nodes import NodeStore
from portal.store.reading import reading
from portal.store.tables import ChangeCountRow, ClusterRow, HeartbeatRow
from portal.store.tables.changes import LIMITS, SITE, USE

Value = TypeVar("Value")


class Reported(NamedTuple):
    """Slurm's last reports, read in one transaction; empty before the worker's first poll."""

    status: SlurmStatus = SlurmStatus(None, None)
    partitions: Sequence[Partition] = ()
    limits: Limits | None = None
    use: ClusterUsage = ClusterUsage()


class StatusStore:
    """The cluster's status as last polled by the worker. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)
        self.nodes = NodeStore(engine)
        self._partitions: _Parsed[Sequence[Partition]] = _Parsed(_PARTITIONS_TEXT, _partitions)
        self._limits: _Parsed[Limits | None] = _Parsed(_LIMITS_TEXT, _limits)
        self._use: _Parsed[ClusterUsage] = _Parsed(_USE_TEXT, _use)

    def note_answer(self, now: datetime) -> None:
        """Record that Slurm answered."""
        self._cluster(answered=now, failing_since=None, message="")

    def note_failure(self, now: datetime, message: str) -> None:
        """Record that Slurm did not answer; the time of the first failure is kept."""
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
        """The times of Slurm's last answer and of its first failure since."""
        with reading(self._readers) as db:
            row = db.exec(_ANSWER).first()
            if row is None:
                return SlurmStatus(None, None)
            return self._status(db, row)

    def reported(self) -> Reported:
        """Slurm's last reports, except for its nodes."""
        with reading(self._readers) as db:
            row = db.exec(_ANSWER).first()
            if row is None:
                return Reported()
            *_, site, use, limits = row
            return Reported(
                self._status(db, row),
                self._partitions.value(db, site),
                self._limits.value(db, limits),
                self._use.value(db, use),
            )

    def _status(self, db: Database, row: Any) -> SlurmStatus:
        answered, failing, message, worker_beat, _, use, _ = row
        return SlurmStatus(answered, failing, message, self._use.value(db, use).rooms, worker_beat)

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Save the partitions."""
        self._cluster(partitions=_PARTITIONS.dump_json(list(partitions)).decode())

    def save_limits(self, limits: Limits) -> None:
        """Save Slurm's limits, without its clock, which would make each of them a change."""
        limits = replace(limits, site=replace(limits.site, clock=None))
        self._cluster(limits=_LIMITS.dump_json(limits).decode())

    def save_use(self, use: ClusterUsage) -> None:
        """Save the cluster's use, as last polled."""
        self._cluster(use=_USE.dump_json(use).decode())

    def save_measured(self, measured: TrafficSample) -> None:
        """Save the traffic from browsers to apps so far."""
        self._cluster(measured=_MEASURED.dump_json(measured).decode())

    def measured(self) -> TrafficSample | None:
        """The traffic as last measured; None before the first measurement."""
        with reading(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _MEASURED.validate_json(row.measured) if row and row.measured else None


class _Parsed(Generic[Value]):
    """A value parsed from the cluster's row, which is large on a large site.

    It is read again only after a change, by the count of changes (tables/changes.py).
    """

    def __init__(self, texts: Any, parse: Callable[..., Value]) -> None:
        self._texts = texts
        self._parse = parse
        self._last: tuple[int | None, Value] | None = None

    def value(self, db: Database, count: int | None) -> Value:
        """The value at this count, which was read in the same transaction."""
        last = self._last
        if last is None or last[0] != count:
            last = self._last = count, self._parse(*db.execute(self._texts).one())
        return last[1]


def _count(scope: str) -> Any:
    return select(ChangeCountRow.number).where(ChangeCountRow.scope == scope).scalar_subquery()


_SEEN = select(HeartbeatRow.beaten).where(col(HeartbeatRow.name) == WORKER).scalar_subquery()
_ANSWER: Any = select(
    ClusterRow.answered,  # type: ignore[call-overload]  # it has no variant for seven columns
    ClusterRow.failing_since,
    ClusterRow.message,
    _SEEN,
    _count(SITE),
    _count(USE),
    _count(LIMITS),
).where(col(ClusterRow.id) == 1)
_PARTITIONS_TEXT = select(ClusterRow.partitions).where(col(ClusterRow.id) == 1)
_LIMITS_TEXT = select(ClusterRow.limits).where(col(ClusterRow.id) == 1)
_USE_TEXT = select(ClusterRow.use).where(col(ClusterRow.id) == 1)
_MEASURED = TypeAdapter(TrafficSample)
_PARTITIONS = TypeAdapter(list[Partition])
_LIMITS = TypeAdapter(Limits)
_USE = TypeAdapter(ClusterUsage)


def _partitions(text: str) -> Sequence[Partition]:
    return tuple(_PARTITIONS.validate_json(text)) if text else ()


def _limits(text: str) -> Limits | None:
    return _LIMITS.validate_json(text) if text else None


def _use(text: str) -> ClusterUsage:
    return _USE.validate_json(text) if text else ClusterUsage()
