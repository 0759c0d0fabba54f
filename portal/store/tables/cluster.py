"""The cluster's status."""

from __future__ import annotations

from datetime import datetime

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
    """Allocations of each node, as JSON; one row, apart from the columns that every page reads."""

    __tablename__ = "cluster_nodes"

    id: int = Field(default=1, primary_key=True)
    nodes: str = "[]"


class HeartbeatRow(SQLModel, table=True):
    """The last heartbeat of a process."""

    __tablename__ = "heartbeat"

    name: str = Field(primary_key=True)
    beaten: datetime | None = time_column(default=None)
