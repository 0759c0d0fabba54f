"""Announcements."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from portal.store.tables.columns import time_column


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
