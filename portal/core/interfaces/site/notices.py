"""Interface to the store of announcements and of the maintenance mode."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from portal.core.admin.audit import AuditEvent
from portal.core.notices.announcements import Announcement
from portal.core.notices.maintenance import Maintenance

Change = Callable[[Announcement | None, int], tuple[Announcement, AuditEvent]]
"""From the stored announcement, and the number of all, to the new one with its audit event."""
MaintenanceChange = Callable[[Maintenance | None], tuple[Maintenance | None, AuditEvent]]


class NoticeStore(Protocol):
    """Announcements and maintenance. Every method is one transaction.

    As in AdministrationStore, a change and its audit event are stored together or not at all, and
    Conflict is raised if `seen`, the ETag of what the change is based on, is not what is stored.
    """

    def announcements(self) -> list[Announcement]:
        """All of them, the newest first."""
        ...

    def save_announcement(self, id: str, seen: str | None, change: Change) -> Announcement:
        """Create or replace an announcement."""
        ...

    def drop_announcement(
        self, id: str, seen: str | None, line: Callable[[Announcement], AuditEvent]
    ) -> Announcement | None:
        """Delete an announcement and return it; None if there is none."""
        ...

    def maintenance(self) -> Maintenance | None:
        """The maintenance that was announced last, also after its end; None if there is none."""
        ...

    def save_maintenance(self, seen: str | None, now: datetime, change: MaintenanceChange) -> None:
        """Replace it; None ends it. What was over at `now` counts as none."""
        ...
