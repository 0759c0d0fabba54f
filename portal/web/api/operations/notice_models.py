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
    """Whether it is shown to everybody who opens the portal, also before logging in."""
    state: State
    created: Time

    @classmethod
    def of(cls, found: Announcement, now: datetime) -> AnnouncementOut:
        """Build it, as it is at this time."""
        linked = bool(found.link_url)
        return cls(
            id=found.id,
            text=found.text,
            link=LinkOut(title=found.link_title, url=found.link_url) if linked else None,
            level=found.level,
            starts=found.starts,
            ends=found.ends,
            dismissable=found.dismissable,
            on_login=found.on_login,
            state=found.state(now),
            created=found.created,
        )


class AnnouncementListOut(ResponseModel):
    """Announcements, the newest first."""

    announcements: list[AnnouncementOut]


class MaintenanceOut(ResponseModel):
    """Whether maintenance is going on."""

    on: bool
    until: Time | None
    """When it is over; null if nobody knows, or if there is none."""
    message: str
    since: Time | None
    by: str
    """The administrator who announced it."""

    @classmethod
    def of(cls, found: Maintenance | None) -> MaintenanceOut:
        """Build it; None: there is none."""
        if found is None:
            return cls(on=False, until=None, message="", since=None, by="")
        return cls(
            on=True, until=found.until, message=found.message, since=found.since, by=found.by
        )
