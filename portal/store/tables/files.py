"""Users' file servers."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from portal.store.tables.columns import time_column


class FileServerRow(SQLModel, table=True):
    """A user's file server; fields as in core.files.server.FileServer, and a claim to start one."""

    __tablename__ = "file_server"

    owner: str = Field(primary_key=True)
    id: str = ""
    address: str = ""
    port: int = 0
    started: datetime | None = time_column(default=None)
    starting: datetime | None = time_column(default=None)
    """When the claim to start one expires."""
    cleaned: datetime | None = time_column(default=None)
    """When its unfinished files were removed; None since its last start."""


class FolderShareRow(SQLModel, table=True):
    """A share of a storage folder; fields as in core.files.shares."""

    __tablename__ = "folder_share"
    __table_args__ = (Index("ix_folder_share_with", "kind", "name"),)

    owner: str = Field(primary_key=True)
    folder: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    access: str
    state: str
    created: datetime = time_column()
