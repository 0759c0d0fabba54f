"""What administrators tell everybody: announcements, and that maintenance is going on."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import NamedTuple

from portal.core.admin.audit import AuditEvent
from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock
from portal.core.notices.announcements import (
    MOST,
    Announcement,
    AnnouncementRequest,
    announcement,
    shown_now,
)
from portal.core.notices.maintenance import (
    Maintenance,
    MaintenanceRequest,
    launch_begin,
    until_problems,
)
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound
from portal.services.admin.administration import Administration
from portal.store.notices import NoticeStore


class Shown(NamedTuple):
    """What is shown on a page."""

    announcements: list[Announcement]
    maintenance: Maintenance | None


class Notices:
    """Announcements and the maintenance mode; only administrators change them (else NotFound)."""

    def __init__(self, store: NoticeStore, administration: Administration, clock: Clock) -> None:
        self._store = store
        self._administration = administration
        self._clock = clock

    # Announcements

    def shown(self, logged_in: bool) -> Shown:
        """What is shown now, to those who have logged in or to everybody."""
        known = self._store.announcements()
        return Shown(shown_now(known, self._clock(), logged_in), self.maintenance())

    def known(self, person: Person) -> list[Announcement]:
        """What this user may read: administrators also what is planned or over."""
        found = self._store.announcements()
        return found if person.admin else shown_now(found, self._clock(), logged_in=True)

    def announcement(self, person: Person, id: str) -> Announcement:
        """One of these; raises NotFound."""
        found = next((one for one in self.known(person) if one.id == id), None)
        if found is None:
            raise NotFound("There is no such announcement.")
        return found

    def announce(self, person: Person, asked: AnnouncementRequest) -> Announcement:
        """Write a new announcement; raises InvalidRequest."""
        self._administration.admit(person)
        return self._save(person, uuid.uuid4().hex[:12], asked, "")

    def change(
        self, person: Person, id: str, asked: AnnouncementRequest, seen: str | None = None
    ) -> Announcement:
        """Replace an announcement; raises NotFound, or Conflict if it is not the one `seen`."""
        self._administration.admit(person)
        return self._save(person, id, asked, seen)

    def _save(
        self, person: Person, id: str, asked: AnnouncementRequest, seen: str | None
    ) -> Announcement:
        def change(before: Announcement | None, number: int) -> tuple[Announcement, AuditEvent]:
            if before is None and seen != "":
                raise NotFound("There is no such announcement.")
            if before is None and number >= MOST:
                text = f"there are {MOST} announcements already; delete those that are over"
                raise InvalidRequest([FieldError("text", text)])
            after = announcement(id, asked, before.created if before else self._clock())
            action = "announcement.change" if before else "announcement.make"
            return after, self._entry(person, action, id, after.describe())

        return self._store.save_announcement(id, seen, change)

    def withdraw(self, person: Person, id: str, seen: str | None = None) -> Announcement:
        """Delete an announcement; raises NotFound, or Conflict if it is not the one `seen`."""
        self._administration.admit(person)

        def line(found: Announcement) -> AuditEvent:
            return self._entry(person, "announcement.delete", id, found.describe())

        found = self._store.drop_announcement(id, seen, line)
        if found is None:
            raise NotFound("There is no such announcement.")
        return found

    # Maintenance

    def maintenance(self) -> Maintenance | None:
        """The maintenance that is going on; None if there is none."""
        found = self._store.maintenance()
        return found if found is not None and found.in_force(self._clock()) else None

    def begin_maintenance(
        self, person: Person, asked: MaintenanceRequest, seen: str | None = None
    ) -> Maintenance:
        """Begin maintenance, or change its end and message.

        Raises InvalidRequest, or Conflict if it is not the one `seen` ("" for none).
        """
        self._administration.admit(person)
        now = self._clock()
        if problems := until_problems(asked.until, now):
            raise InvalidRequest(problems)

        def change(before: Maintenance | None) -> tuple[Maintenance, AuditEvent]:
            action = "maintenance.change" if before else "maintenance.on"
            return after, self._entry(person, action, "", after.describe())

        after = Maintenance(until=asked.until, message=asked.message, since=now, by=person.name)
        self._store.save_maintenance(seen, now, change)
        return after

    def end_maintenance(self, person: Person, seen: str | None = None) -> None:
        """End maintenance before its time; raises Conflict if there is none, or another one."""
        self._administration.admit(person)

        def change(before: Maintenance | None) -> tuple[None, AuditEvent]:
            if before is None:
                raise Conflict("There is no maintenance now.")
            return None, self._entry(person, "maintenance.off", "", before.describe())

        self._store.save_maintenance(seen, self._clock(), change)

    def launch_begin(self, person: Person) -> datetime | None:
        """When what this user launches now may start at the earliest; None: at once.

        Raises UnderMaintenance, if nobody knows.
        """
        return launch_begin(self._store.maintenance(), person, self._clock())

    def _entry(self, person: Person, action: str, target: str, detail: str) -> AuditEvent:
        return self._administration.new_event(person.name, action, target, detail)
