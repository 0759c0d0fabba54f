"""The administrators' settings, announcements and the audit log."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, text
from sqlmodel import Field, SQLModel

from portal.store.tables.columns import WordTuple, time_column

OPENED = text("action = 'app.open'")
"""Condition for the events of opened apps."""


class ImageRuleRow(SQLModel, table=True):
    """Visibility of an image; fields as in core.admin.images.ImageRule."""

    __tablename__ = "image_rule"

    environment: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    seen_by: str
    accounts: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    users: tuple[str, ...] = Field(default=(), sa_type=WordTuple)


class SiteRuleRow(SQLModel, table=True):
    """One cap of core.site_rules.SiteRules, as JSON."""

    __tablename__ = "site_rule"

    name: str = Field(primary_key=True)
    value: str


class AuditRow(SQLModel, table=True):
    """One event of the audit log; fields as in core.admin.audit.AuditEvent."""

    __tablename__ = "journal"
    __table_args__ = (
        Index("journal_who", "who", "id"),
        Index("journal_target", "target", "id"),
        Index("journal_opened", "target", "detail", sqlite_where=OPENED, postgresql_where=OPENED),
    )

    id: int | None = Field(default=None, primary_key=True)
    time: datetime = time_column(index=True)
    who: str
    action: str
    target: str = ""
    detail: str = ""
    address: str = ""


class AnnouncementRow(SQLModel, table=True):
    """An announcement; fields as in core.notices.announcements.Announcement."""

    __tablename__ = "announcement"

    id: str = Field(primary_key=True)
    text: str
    link_title: str = ""
    link_url: str = ""
    level: str
    starts: datetime | None = time_column(default=None)
    ends: datetime | None = time_column(default=None)
    dismissable: bool = True
    on_login: bool = False
    created: datetime = time_column()
