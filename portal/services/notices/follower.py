"""Tells Slurm when maintenance ends earlier or later than sessions that wait for it were told."""

from __future__ import annotations

import logging
import math
from datetime import timedelta

from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.notices.maintenance import begin_now
from portal.core.session.session import Session, State
from portal.services.owner_queue import SessionQueue
from portal.store.notices import NoticeStore
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

TOLERANCE = timedelta(seconds=5)


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
        """Move the starts that differ from the end of the maintenance, as it is known now."""
        for session in self._store.live():
            if self._seconds(session) is not None:
                self._session_queue.run(session, "begin", self._move)

    def _seconds(self, session: Session) -> int | None:
        """In how many seconds it should start; None if Slurm knows that already."""
        waits = session.state is State.PENDING and session.requeued is None
        if not waits or session.begin is None or session.job_id is None:
            return None
        now = self._clock()
        wanted = begin_now(self._notices.maintenance(), session.begin, now)
        if abs(wanted - session.begin) <= TOLERANCE:
            return None
        return max(math.ceil((wanted - now).total_seconds()), 0)

    def _move(self, session: Session) -> None:
        seconds = self._seconds(session)
        if seconds is None or session.job_id is None:
            return
        # Slurm is told first: after a crash before the second line it is told again.
        self._scheduler.begin(session.owner, session.job_id, seconds)
        begin = self._clock() + timedelta(seconds=seconds)
        self._store.change(session.id, {State.PENDING}, begin=begin)
        log.info("session %s: starts at %s at the earliest", session.id, begin)
