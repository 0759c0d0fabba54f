"""Several portal hosts on one database."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from portal.store.tables.columns import time_column


class HostRow(SQLModel, table=True):
    """A portal host."""

    __tablename__ = "host"

    name: str = Field(primary_key=True)
    machine: str
    seen: datetime = time_column()
    traffic: str = "{}"


class RemovedRow(SQLModel, table=True):
    """A host's confirmation that its HAProxy has removed a key; `since` as in PendingRemovalRow."""

    __tablename__ = "removed"

    key: str = Field(primary_key=True)
    host: str = Field(primary_key=True)
    since: datetime = time_column()


class LeaseRow(SQLModel, table=True):
    """The lease of the worker; one row. `number` grows with each holder."""

    __tablename__ = "lease"

    id: int = Field(default=1, primary_key=True)
    number: int = 0
    host: str = ""
    pid: int = 0
    since: datetime = time_column()
    renewed: datetime | None = time_column(default=None)
