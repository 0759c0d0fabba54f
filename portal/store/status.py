"""The cluster's last known status: one row, values as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import Engine, func
from sqlmodel import Session as Database
from sqlmodel import col, select, update

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.node_use import NodeUse
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.monitoring import WORKER
from portal.core.session.idle import TrafficSample
from portal.store.reading import reading
from portal.store.tables import ClusterNodesRow, ClusterRow, HeartbeatRow


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
        answered, failing, message, use, worker_beat = row
        return SlurmStatus(answered, failing, message, _use(use).rooms, worker_beat)

    def reported(self) -> Reported:
        """Slurm's last reports, except for its nodes."""
        with reading(self._readers) as db:
            row = db.exec(_REPORTED).first()
        if row is None:
            return Reported()
        answered, failing, message, use, worker_beat, partitions, limits = row
        usage = _use(use)
        return Reported(
            SlurmStatus(answered, failing, message, usage.rooms, worker_beat),
            _partitions(partitions),
            _limits(limits) if limits else None,
            usage,
        )

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Save the partitions."""
        self._cluster(partitions=_PARTITIONS.dump_json(list(partitions)).decode())

    def save_limits(self, limits: Limits) -> None:
        """Save Slurm's limits."""
        self._cluster(limits=_LIMITS.dump_json(limits).decode())

    def save_use(self, use: ClusterUsage) -> None:
        """Save the cluster's use, as last polled."""
        self._cluster(use=_USE.dump_json(use).decode())

    def save_nodes(self, nodes: Sequence[NodeUse]) -> None:
        """Save the allocations of each node, as last polled."""
        text = _NODES.dump_json(list(nodes)).decode()
        with Database(self._engine) as db:
            row = db.get(ClusterNodesRow, 1) or ClusterNodesRow()
            row.nodes = text
            db.add(row)
            db.commit()

    def nodes(self) -> list[NodeUse]:
        """The allocations of each node; [] before the first poll."""
        with reading(self._readers) as db:
            row = db.get(ClusterNodesRow, 1)
            return _NODES.validate_json(row.nodes) if row else []

    def save_measured(self, measured: TrafficSample) -> None:
        """Save the traffic from browsers to apps so far."""
        self._cluster(measured=_MEASURED.dump_json(measured).decode())

    def measured(self) -> TrafficSample | None:
        """The traffic as last measured; None before the first measurement."""
        with reading(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _MEASURED.validate_json(row.measured) if row and row.measured else None


_SEEN = select(HeartbeatRow.beaten).where(col(HeartbeatRow.name) == WORKER).scalar_subquery()
_ANSWER: Any = select(
    ClusterRow.answered,  # type: ignore[call-overload]  # it has no variant for five columns
    ClusterRow.failing_since,
    ClusterRow.message,
    ClusterRow.use,
    _SEEN,
).where(col(ClusterRow.id) == 1)
_REPORTED: Any = _ANSWER.add_columns(col(ClusterRow.partitions), col(ClusterRow.limits))
_MEASURED = TypeAdapter(TrafficSample)
_NODES = TypeAdapter(list[NodeUse])
_PARTITIONS = TypeAdapter(list[Partition])
_LIMITS = TypeAdapter(Limits)
_USE = TypeAdapter(ClusterUsage)


@lru_cache(maxsize=2)
def _partitions(text: str) -> Sequence[Partition]:
    return tuple(_PARTITIONS.validate_json(text)) if text else ()


@lru_cache(maxsize=2)
def _limits(text: str) -> Limits:
    # Large sites have thousands of associations, and pages poll every two seconds.
    return _LIMITS.validate_json(text)


@lru_cache(maxsize=2)
def _use(text: str) -> ClusterUsage:
    return _USE.validate_json(text) if text else ClusterUsage()
