"""Response models of announcements and maintenance."""

from __future__ import annotations

from datetime import datetime

from portal.core.notices.announcements import Announcement, Level, State
from portal.core.notices.maintenance import Maintenance
from portal.web.api.models.base import ResponseModel, Time


class LinkOut(ResponseModel):
    """The link of an announcement."""

    title: str
    url: str


class AnnouncementOut(ResponseModel):
    """An announcement."""

    id: str
    text: str
    """Plain text."""
    link: LinkOut | None
    level: Level
    starts: Time | None
    ends: Time | None
    dismissable: bool
    on_login: bool
    """Whether it is also shown before logging in."""
    state: State
    created: Time

    @classmethod
    def of(cls, announcement: Announcement, now: datetime) -> AnnouncementOut:
        """Build it, with its state at `now`."""
        linked = bool(announcement.link_url)
        return cls(
            id=announcement.id,
            text=announcement.text,
            link=LinkOut(title=announcement.link_title, url=announcement.link_url)
            if linked
            else None,
            level=announcement.level,
            starts=announcement.starts,
            ends=announcement.ends,
            dismissable=announcement.dismissable,
            on_login=announcement.on_login,
            state=announcement.state(now),
            created=announcement.created,
        )


class AnnouncementListOut(ResponseModel):
    """Announcements, the newest first."""

    announcements: list[AnnouncementOut]


class MaintenanceOut(ResponseModel):
    """The state of maintenance."""

    on: bool
    until: Time | None
    """The planned end; null if unknown, or without maintenance."""
    message: str
    since: Time | None
    by: str
    """The administrator who announced it."""

    @classmethod
    def of(cls, maintenance: Maintenance | None) -> MaintenanceOut:
        """Build it; None means no maintenance."""
        if maintenance is None:
            return cls(on=False, until=None, message="", since=None, by="")
        return cls(
            on=True,
            until=maintenance.until,
            message=maintenance.message,
            since=maintenance.since,
            by=maintenance.by,
        )
