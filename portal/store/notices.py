"""Announcements and the maintenance mode in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, select

from portal.core.admin.audit import AuditEvent
from portal.core.admin.etag import etag
from portal.core.notices.announcements import Announcement
from portal.core.notices.maintenance import Maintenance
from portal.errors import Conflict
from portal.store.administration import OVERTAKEN, audit_row
from portal.store.reading import reading
from portal.store.tables import AnnouncementRow, SiteRuleRow

MaintenanceChange = Callable[[Maintenance | None], tuple[Maintenance | None, AuditEvent]]


Change = Callable[[Announcement | None, int], tuple[Announcement, AuditEvent]]
"""Maps the stored announcement, and the number of all, to the new one with its audit event."""


_NAME = "maintenance"
"""Key of its row in site_rule; core.site_rules.SiteRules has no field of this name."""


class NoticeStore:
    """Announcements and maintenance. Every method is one transaction.

    As in AdministrationStore, a change and its audit event are stored together or not at all, and
    Conflict is raised if `seen`, the ETag that the change is based on, is not the stored one.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def announcements(self) -> list[Announcement]:
        """All announcements, newest first."""
        newest = select(AnnouncementRow).order_by(
            col(AnnouncementRow.created).desc(), col(AnnouncementRow.id)
        )
        with reading(self._readers) as db:
            return [Announcement.model_validate(row) for row in db.exec(newest)]

    def save_announcement(self, id: str, seen: str | None, change: Change) -> Announcement:
        """Create or replace an announcement."""
        with Database(self._engine) as db:
            # All rows are locked, so that two new ones cannot exceed the most together.
            rows = db.exec(select(AnnouncementRow).with_for_update()).all()
            row = next((row for row in rows if row.id == id), None)
            before = Announcement.model_validate(row) if row else None
            after, entry = change(before, len(rows))
            _compare(seen, before)
            db.merge(AnnouncementRow(**after.model_dump()))
            db.add(audit_row(entry))
            db.commit()
            return after

    def drop_announcement(
        self, id: str, seen: str | None, line: Callable[[Announcement], AuditEvent]
    ) -> Announcement | None:
        """Delete an announcement and return it; None if there is none."""
        with Database(self._engine) as db:
            row = db.get(AnnouncementRow, id, with_for_update=True)
            if row is None:
                return None
            announcement = Announcement.model_validate(row)
            _compare(seen, announcement)
            db.delete(row)
            db.add(audit_row(line(announcement)))
            db.commit()
            return announcement

    def maintenance(self) -> Maintenance | None:
        """The maintenance that was announced last, also after its end; None if there is none."""
        with reading(self._readers) as db:
            return _read(db.get(SiteRuleRow, _NAME))

    def save_maintenance(self, seen: str | None, now: datetime, change: MaintenanceChange) -> None:
        """Replace the maintenance; None ends it. `change` gets None if it was over at `now`."""
        try:
            with Database(self._engine) as db:
                row = db.get(SiteRuleRow, _NAME, with_for_update=True)
                stored = _read(row)
                before = stored if stored and stored.in_force(now) else None
                _compare(seen, before)
                after, entry = change(before)
                if after is not None:
                    row = row or SiteRuleRow(name=_NAME, value="")
                    row.value = after.model_dump_json()
                    db.add(row)
                elif row is not None:
                    db.delete(row)
                db.add(audit_row(entry))
                db.commit()
        except IntegrityError:  # a concurrent request has inserted the row
            raise Conflict(OVERTAKEN) from None


def _read(row: SiteRuleRow | None) -> Maintenance | None:
    return Maintenance.model_validate_json(row.value) if row else None


def _compare(seen: str | None, now: Announcement | Maintenance | None) -> None:
    if seen is not None and seen != etag(now):
        raise Conflict(OVERTAKEN)
