"""Presets and resource templates."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from portal.store.tables.columns import time_column


class PresetRow(SQLModel, table=True):
    """A preset: a launch request as JSON, including values of variables."""

    __tablename__ = "preset"

    owner: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    request: str
    saved: datetime = time_column()


class RegistryLoginRow(SQLModel, table=True):
    """A user's login for a registry; the password is sealed."""

    __tablename__ = "registry_login"

    owner: str = Field(primary_key=True)
    host: str = Field(primary_key=True)
    user: str
    secret: str
    added: datetime | None = time_column(default=None)
    used: datetime | None = time_column(default=None)


class TemplateRow(SQLModel, table=True):
    """A resource template; fields as in core.launch.templates.Template."""

    __tablename__ = "template"

    name: str = Field(primary_key=True)
    title: str
    description: str = ""
    cpus: int
    memory_mb: int
    shared_memory_mb: int | None = None
    fgpu: float | None = None
    gpu_kind: str | None = None
    time_limit: int | None = None
    resource_group: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    exclusive: bool = False
    place: int = 0
