"""Applies Slurm's reports to sessions: one poll of the queue for all users.

"Not found" is not "ended". A session ends when Slurm's queue or its accounting says so; until then
it keeps its state, and pages show UNKNOWN when Slurm does not answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.queue import queue_positions
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.jobs.job import Job
from portal.core.session.session import Session, State
from portal.core.session.transitions import (
    START_TIMEOUT,
    end,
    follow,
    never_called,
    stop_unheard,
    was_requeued,
)
from portal.errors import PortalError
from portal.services.cluster import ClusterReader
from portal.services.owner_queue import SessionQueue
from portal.services.session.recovery import Recovery
from portal.services.teardown import Teardown
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

CANCEL_INTERVAL = timedelta(seconds=6)
"""Time before an ineffective scancel is repeated."""
ACCOUNTING_LAG = timedelta(seconds=5)
"""How long accounting may lag behind the queue in recording the end of a job."""


class Reconciler:
    """Updates the stored sessions from Slurm's jobs."""

    def __init__(
        self,
        *,
        store: SessionStore,
        scheduler: Scheduler,
        reader: ClusterReader,
        recovery: Recovery,
        teardown: Teardown,
        session_queue: SessionQueue,
        note_queue: Callable[[Mapping[str, Job], datetime], object],
        clock: Clock,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._reader = reader
        self._recovery = recovery
        self._teardown = teardown
        self._session_queue = session_queue
        self._note_queue = note_queue
        self._clock = clock
        self._starting: dict[str, datetime] = {}
        """When this worker first saw sessions start: the stored time may be from an old backup."""

    def poll(self) -> bool:
        """Poll Slurm's queue once; False if Slurm does not answer (recorded, nothing changes)."""
        # Read before the poll, so that Slurm's answer is newer for each of them.
        live = self._store.live()
        polled = self._clock()
        try:
            queue = self._scheduler.jobs()
        except PortalError as error:
            self._reader.note_failure(polled, error.text)
            return False
        except Exception as error:  # unexpected output must not end any session
            log.exception("reading the queue")
            self._reader.note_failure(polled, f"unreadable answer: {error}")
            return False
        self._note_queue(queue, polled)
        jobs = {job_id: job.report for job_id, job in queue.items()}
        self._reader.note_jobs(jobs.values(), self._clock())
        ahead = self._positions(live, jobs)
        starting = {session.id for session in live if session.ready is None}
        self._starting = {id: since for id, since in self._starting.items() if id in starting}
        over = [session for session in live if self._follow(session, jobs, ahead)]
        self._conclude(over, jobs)
        return True

    @staticmethod
    def _positions(live: Sequence[Session], jobs: Mapping[str, JobReport]) -> dict[str, int]:
        """Number of jobs ahead of each session's pending job."""
        ours = [report for session in live if (report := jobs.get(session.job_id or ""))]
        waiting = [report for report in ours if report.state is JobState.PENDING]
        return queue_positions(jobs.values(), waiting) if waiting else {}

    def _follow(self, session: Session, jobs: dict[str, JobReport], ahead: dict[str, int]) -> bool:
        """Update one session; True if its job is over or not in the queue."""
        report = jobs.get(session.job_id or "")
        try:
            if session.job_id is None:
                if self._recovery.is_due(session):
                    self._session_queue.run(session, "settle", self._recovery.settle)
            elif report is None or report.user != session.owner or report.state.over:
                return True
            else:
                self._apply(session, replace(report, ahead=ahead.get(report.job_id)))
        except Exception:  # one broken session must not prevent updates of the others
            log.exception("session %s", session.id)
        return False

    def _apply(self, session: Session, report: JobReport) -> None:
        now = self._clock()
        transition = follow(session, report, now)
        if was_requeued(session, report):
            # First, so that it is repeated after a crash: no route leads to the old run.
            self._teardown.close_apps(session.id)
        changed = self._store.apply(session.id, transition)
        if (changed or session).state is State.STARTING:
            self._starting.setdefault(session.id, now)
        stopped = session.stop_requested
        if stopped and now - stopped > CANCEL_INTERVAL and not report.state.over:
            self._teardown.cancel_later(session)
        elif never_called(session, now) and self._has_waited(session, now):
            self._store.apply(session.id, stop_unheard(now))
            self._teardown.cancel_later(session)

    def _has_waited(self, session: Session, now: datetime) -> bool:
        """Whether this worker, too, has waited for the session's runner for long enough."""
        return now - self._starting.setdefault(session.id, now) > START_TIMEOUT

    def _conclude(self, sessions: list[Session], jobs: dict[str, JobReport]) -> None:
        """End the sessions whose jobs are over or gone from the queue, using accounting."""
        if not sessions:
            return
        try:
            ended = self._scheduler.ended([s.job_id for s in sessions if s.job_id])
        except PortalError as error:
            log.warning("accounting does not answer: %s", error)
            ended = {}
        for session in sessions:
            job_id = session.job_id or ""
            report = ended.get(job_id)
            if report is None or not report.state.over:
                if report is not None and self._accounting_may_lag(jobs.get(job_id)):
                    continue
                report = jobs.get(job_id)
            if report is not None and report.user == session.owner and report.state.over:
                self._end(session, report)
            elif report is None and session.lost is None:
                self._store.change(session.id, {session.state}, lost=self._clock())
            elif report is None and self._recovery.should_search(session):
                self._session_queue.run(session, "search", self._recovery.search, "/search")

    def _accounting_may_lag(self, queued: JobReport | None) -> bool:
        """Whether to wait for accounting, which alone records who cancelled a job."""
        ended = queued.end if queued and queued.state.over else None
        # abs: if Slurm's clock is ahead, the end may be far in the future.
        return ended is not None and abs(self._clock() - ended) < ACCOUNTING_LAG

    def _end(self, session: Session, report: JobReport) -> None:
        fresh = self._store.get(session.id) or session
        if self._store.apply(session.id, end(fresh, report, self._clock())):
            self._teardown.close_apps(session.id)
