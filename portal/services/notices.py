"""Announcements by administrators, and the maintenance mode."""

from __future__ import annotations

import logging
import math
import uuid
from datetime import datetime, timedelta
from typing import NamedTuple

from portal.core.admin.audit import AuditEvent
from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock, Scheduler
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
    UnderMaintenance,
    begin_now,
    launch_begin,
    until_problems,
)
from portal.core.notices.window import Window, waits_for, window
from portal.core.session.session import Session, State
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound
from portal.services.admin.administration import Administration
from portal.services.owner_queue import SessionQueue
from portal.store.notices import NoticeStore
from portal.store.sessions import SessionStore
from portal.store.status import StatusStore

log = logging.getLogger(__name__)

TOLERANCE = timedelta(seconds=5)
"""Difference of begin times for which Slurm is not updated."""


class ShownNotices(NamedTuple):
    """The announcements and the maintenance shown on a page."""

    announcements: list[Announcement]
    maintenance: Maintenance | None


class LaunchDelay(NamedTuple):
    """The effect of maintenance on a launch."""

    begin: datetime | None = None
    """When it would start, because of the portal's maintenance mode; None: at once."""
    refused: str = ""
    """Why it would be refused."""
    window: Window | None = None
    """Slurm's maintenance that its time limit reaches into; None if there is none."""


class Notices:
    """Announcements and the maintenance mode; only administrators change them (else NotFound)."""

    def __init__(
        self,
        store: NoticeStore,
        administration: Administration,
        status: StatusStore,
        clock: Clock,
    ) -> None:
        self._store = store
        self._administration = administration
        self._status = status
        self._clock = clock

    # Announcements

    def shown(self, logged_in: bool) -> ShownNotices:
        """The notices to show now; without a login only those for everybody."""
        announcements = self._store.announcements()
        return ShownNotices(shown_now(announcements, self._clock(), logged_in), self.maintenance())

    def readable(self, person: Person) -> list[Announcement]:
        """Announcements that this user may read; for administrators also planned and past ones."""
        announcements = self._store.announcements()
        if person.admin:
            return announcements
        return shown_now(announcements, self._clock(), logged_in=True)

    def announcement(self, person: Person, id: str) -> Announcement:
        """An announcement that this user may read; raises NotFound."""
        match = next((a for a in self.readable(person) if a.id == id), None)
        if match is None:
            raise NotFound("There is no such announcement.")
        return match

    def announce(self, person: Person, request: AnnouncementRequest) -> Announcement:
        """Write a new announcement; raises InvalidRequest."""
        self._administration.admit(person)
        return self._save(person, uuid.uuid4().hex[:12], request, "")

    def change(
        self, person: Person, id: str, request: AnnouncementRequest, etag: str | None = None
    ) -> Announcement:
        """Replace an announcement; raises NotFound, or Conflict if its ETag is not `etag`."""
        self._administration.admit(person)
        return self._save(person, id, request, etag)

    def _save(
        self, person: Person, id: str, request: AnnouncementRequest, etag: str | None
    ) -> Announcement:
        def change(before: Announcement | None, number: int) -> tuple[Announcement, AuditEvent]:
            if before is None and etag != "":
                raise NotFound("There is no such announcement.")
            if before is None and number >= MOST:
                text = f"there are {MOST} announcements already; delete those that are over"
                raise InvalidRequest([FieldError("text", text)])
            after = announcement(id, request, before.created if before else self._clock())
            action = "announcement.change" if before else "announcement.make"
            return after, self._entry(person, action, id, after.describe())

        return self._store.save_announcement(id, etag, change)

    def withdraw(self, person: Person, id: str, etag: str | None = None) -> Announcement:
        """Delete an announcement; raises NotFound, or Conflict if its ETag is not `etag`."""
        self._administration.admit(person)

        def event(dropped: Announcement) -> AuditEvent:
            return self._entry(person, "announcement.delete", id, dropped.describe())

        dropped = self._store.drop_announcement(id, etag, event)
        if dropped is None:
            raise NotFound("There is no such announcement.")
        return dropped

    # Maintenance

    def maintenance(self) -> Maintenance | None:
        """The current maintenance, if any."""
        stored = self._store.maintenance()
        return stored if stored is not None and stored.in_force(self._clock()) else None

    def begin_maintenance(
        self, person: Person, request: MaintenanceRequest, etag: str | None = None
    ) -> Maintenance:
        """Begin maintenance, or change its end and message.

        Raises InvalidRequest, or Conflict if the ETag is not `etag` ("" for none).
        """
        self._administration.admit(person)
        now = self._clock()
        if problems := until_problems(request.until, now):
            raise InvalidRequest(problems)

        def change(before: Maintenance | None) -> tuple[Maintenance, AuditEvent]:
            action = "maintenance.change" if before else "maintenance.on"
            return after, self._entry(person, action, "", after.describe())

        after = Maintenance(until=request.until, message=request.message, since=now, by=person.name)
        self._store.save_maintenance(etag, now, change)
        return after

    def end_maintenance(self, person: Person, etag: str | None = None) -> None:
        """End maintenance before its time; raises Conflict if there is none, or another one."""
        self._administration.admit(person)

        def change(before: Maintenance | None) -> tuple[None, AuditEvent]:
            if before is None:
                raise Conflict("There is no maintenance now.")
            return None, self._entry(person, "maintenance.off", "", before.describe())

        self._store.save_maintenance(etag, self._clock(), change)

    def launch_begin(self, person: Person) -> datetime | None:
        """Earliest start of a launch by this user now; None: at once.

        Raises UnderMaintenance if the end of the maintenance is not set.
        """
        return launch_begin(self._store.maintenance(), person, self._clock())

    def launch_delay(self, person: Person, draft: Session) -> LaunchDelay:
        """The effect of maintenance on a session as it would be launched; never asks Slurm."""
        try:
            begin = self.launch_begin(person)
        except UnderMaintenance as error:
            return LaunchDelay(refused=error.text)
        return LaunchDelay(begin, window=self._window(draft, begin))

    def _window(self, draft: Session, begin: datetime | None) -> Window | None:
        """Slurm's maintenance of its partition's nodes; not waited for in a reservation."""
        limits = self._status.reported().limits
        if limits is None or draft.partition is None or draft.reservation:
            return None
        nodes = self._status.nodes.names_in(draft.partition)
        start = begin or self._clock()
        return waits_for(window(limits.reservations, nodes, start), draft.time_limit)

    def _entry(self, person: Person, action: str, target: str, detail: str) -> AuditEvent:
        return self._administration.new_event(person.name, action, target, detail)


class MaintenanceFollower:
    """A periodic task of the worker on sessions that were launched during maintenance."""

    def __init__(
        self,
        *,
        store: SessionStore,
        notices: NoticeStore,
        scheduler: Scheduler,
        session_queue: SessionQueue,
        clock: Clock,
    ) -> None:
        self._store = store
        self._notices = notices
        self._scheduler = scheduler
        self._session_queue = session_queue
        self._clock = clock

    def follow(self) -> None:
        """Move the begin times that differ from the current end of maintenance."""
        for session in self._store.live():
            if self._seconds(session) is not None:
                self._session_queue.run(session, "begin", self._move)

    def _seconds(self, session: Session) -> int | None:
        """Seconds until it should start; None if Slurm has that time already."""
        waits = session.state is State.PENDING and session.requeued is None
        if not waits or session.begin is None or session.job_id is None:
            return None
        now = self._clock()
        begin = begin_now(self._notices.maintenance(), session.begin, now)
        if abs(begin - session.begin) <= TOLERANCE:
            return None
        return max(math.ceil((begin - now).total_seconds()), 0)

    def _move(self, session: Session) -> None:
        seconds = self._seconds(session)
        if seconds is None or session.job_id is None:
            return
        # Slurm first: after a crash before the time is stored, this is repeated.
        self._scheduler.begin(session.owner, session.job_id, seconds)
        begin = self._clock() + timedelta(seconds=seconds)
        self._store.change(session.id, {State.PENDING}, begin=begin)
        log.info("session %s: starts at %s at the earliest", session.id, begin)
