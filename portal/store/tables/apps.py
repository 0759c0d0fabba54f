"""Opened apps, their origins, tickets and grants."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from portal.store.tables.columns import WordTuple, time_column


class AppRow(SQLModel, table=True):
    """An app that was opened in a session."""

    __tablename__ = "app"
    __table_args__ = (UniqueConstraint("label"),)

    session: str = Field(primary_key=True)
    app: str = Field(primary_key=True)
    label: str
    state: str
    message: str = ""
    log: str = ""
    public_since: datetime | None = time_column(default=None)
    asked: str = ""
    title: str = ""
    details: str = ""
    shut: bool = False
    moved: datetime | None = time_column(default=None)


class OriginRow(SQLModel, table=True):
    """An origin that may be used again; fields as in core.apps.origins.Origin and OriginUse."""

    __tablename__ = "origin"
    __table_args__ = (Index("origin_use", "owner", "environment", "version", "app"),)

    label: str = Field(primary_key=True)
    is_port: bool = Field(index=True)
    owner: str
    environment: str
    version: str
    app: str
    kept: bool
    shared: bool
    mark: str
    used: datetime = time_column()


class PendingRemovalRow(SQLModel, table=True):
    """A revoked key that HAProxy may still have."""

    __tablename__ = "shutting"

    key: str = Field(primary_key=True)
    session: str = Field(index=True)
    app: str
    since: datetime = time_column()


class EndedAppRow(SQLModel, table=True):
    """The app that was last at an origin, for an owner who still has its address open."""

    __tablename__ = "ended_app"

    label: str = Field(primary_key=True)
    session: str
    app: str
    ended: datetime = time_column(index=True)


class ImageAppsRow(SQLModel, table=True):
    """The apps that sessions found in an image."""

    __tablename__ = "image_apps"

    environment: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    apps: tuple[str, ...] = Field(default=(), sa_type=WordTuple)


class TicketRow(SQLModel, table=True):
    """An unused one-time ticket."""

    __tablename__ = "ticket"

    hash: str = Field(primary_key=True)
    label: str
    session: str = Field(index=True)
    app: str
    user: str
    login: str
    expires: datetime = time_column()


class GrantRow(SQLModel, table=True):
    """A browser's grant to use an app."""

    __tablename__ = "grant"

    cookie_hash: str = Field(primary_key=True)
    label: str
    session: str = Field(index=True)
    app: str
    user: str
    login: str = Field(index=True)
    created: datetime = time_column()
