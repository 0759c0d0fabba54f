"""Moves the begin times of sessions in Slurm when the end of maintenance changes."""

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
