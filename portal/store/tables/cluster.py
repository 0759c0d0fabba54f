"""The cluster's status."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from portal.store.tables.columns import time_column


class ClusterRow(SQLModel, table=True):
    """The cluster's last known status; one row."""

    __tablename__ = "cluster"

    id: int = Field(default=1, primary_key=True)
    answered: datetime | None = time_column(default=None)
    failing_since: datetime | None = time_column(default=None)
    message: str = ""
    partitions: str = "[]"
    limits: str = ""
    use: str = ""
    measured: str = ""


class ClusterNodesRow(SQLModel, table=True):
    """The summary of the nodes, and each user's allocations, as JSON; one row."""

    __tablename__ = "cluster_nodes"

    id: int = Field(default=1, primary_key=True)
    number: int = 0
    """Grows with each save: a process that has not made the last one writes all nodes."""
    summary: str = ""
    users: str = ""


class NodeRow(SQLModel, table=True):
    """One node, and what is allocated on it; fields as in core.cluster.node_use.NodeUse."""

    __tablename__ = "node"
    __table_args__ = (
        Index("node_by_state", "state_key", "name"),
        Index("node_by_cpus_taken", "cpus_taken", "name"),
    )

    name: str = Field(primary_key=True)
    partitions: str
    """With a comma before and after each."""
    features: str
    """With a comma before and after each."""
    state: str
    state_key: str
    reason: str
    usable: bool
    cpus: int
    memory_mb: int
    fgpu: float
    cpus_taken: int
    held: str
    """Each user's allocation, as JSON; "" for none."""


class HeartbeatRow(SQLModel, table=True):
    """The last heartbeat of a process."""

    __tablename__ = "heartbeat"

    name: str = Field(primary_key=True)
    beaten: datetime | None = time_column(default=None)
