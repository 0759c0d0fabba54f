"""What time does to sessions: the worker's look at Slurm, once for everybody.

"Not found" is not "ended". A session ends when Slurm's queue or its accounting says so; until then
it keeps its state, and pages say UNKNOWN when Slurm is silent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from portal.core.cluster.inventory import Node
from portal.core.cluster.jobs import JobReport
from portal.core.cluster.queue import queue_positions
from portal.core.cluster.usage import measure_usage
from portal.core.session.end_reasons import (
    BY_NOBODY_KNOWN,
    LOG_BYTES,
    explain_end,
    needs_log,
    start_failure,
    tail,
)
from portal.core.session.session import LIVE, OVER, Cause, Changes, Session, State
from portal.core.session.transitions import apply_report, never_called, was_requeued
from portal.errors import Conflict, InvalidRequest, PortalError
from portal.services.session.sessions import Sessions

log = logging.getLogger(__name__)

SUBMISSION_SETTLED = timedelta(seconds=60)
"""After this no sbatch of an earlier attempt can still be under way (it is ended after 20 s)."""
LOST_SETTLED = timedelta(seconds=60)
"""How long queue and accounting must not have known a job before it is looked for by its name."""
SEARCH_AGAIN = timedelta(seconds=30)
MAX_ATTEMPTS = 3
CANCEL_AGAIN = timedelta(seconds=6)
ORDER_AGAIN = timedelta(seconds=5)
ACCOUNTING_LAG = timedelta(seconds=5)
LOG_LAG = timedelta(seconds=5)
"""How long a log that is not there yet is waited for: file servers take their time."""
LOG_GIVEN_UP = timedelta(minutes=10)
ASK_WHO = timedelta(days=1)
"""How long accounting is asked who cancelled a job."""


class Reconciler:
    """Brings the stored sessions and Slurm's jobs together."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._scheduler = sessions.scheduler
        self._clock = sessions.clock
        self._nodes: list[Node] = []
        self._searched: dict[str, datetime] = {}
        """When lost sessions were last looked for."""

    def poll(self) -> bool:
        """One look at Slurm's queue; False when Slurm does not answer (noted, nothing changes)."""
        # Read before Slurm is asked: its answer is then the newer word on every one of them.
        live = self._store.live()
        asked = self._clock()
        try:
            jobs = self._scheduler.jobs()
        except PortalError as error:
            self._sessions.status.note_failure(asked, error.text)
            return False
        except Exception as error:  # a surprise in the output must not end anybody's session
            log.exception("reading the queue")
            self._sessions.status.note_failure(asked, f"unreadable answer: {error}")
            return False
        self._sessions.status.note_answer(self._clock())
        self._sessions.status.save_use(
            measure_usage(jobs.values(), self._nodes, self._sessions.gpus)
        )
        ahead = queue_positions(jobs.values())
        over = [session for session in live if self._follow(session, jobs, ahead)]
        self._conclude(over, jobs)
        return True

    def _follow(self, session: Session, jobs: dict[str, JobReport], ahead: dict[str, int]) -> bool:
        """Bring one session up to date; True when its job is over or not in the queue."""
        report = jobs.get(session.job_id or "")
        try:
            if session.job_id is None:
                if self._clock() - session.submitted >= SUBMISSION_SETTLED:
                    self._later(session, "settle", self._settle)
            elif report is None or report.user != session.owner or report.state.over:
                return True
            else:
                self._apply(session, replace(report, ahead=ahead.get(report.job_id)))
        except Exception:  # one odd session must not hold up everybody's
            log.exception("session %s", session.id)
        return False

    def _apply(self, session: Session, report: JobReport) -> None:
        changes = apply_report(session, report, self._clock())
        if was_requeued(session, report):
            # First, so that a crash in between repeats it: nobody is led to what is gone.
            self._sessions.apps.close_session(session.id)
        if changes:
            # Only from the state that was looked at: a call-back may have come in between.
            self._store.change(session.id, {session.state}, **changes)
        stopped = session.stop_requested
        if stopped and self._clock() - stopped > CANCEL_AGAIN and not report.state.over:
            self._sessions.cancel_again(session)
        elif never_called(session, self._clock()):
            self._sessions.give_up(session)

    def _conclude(self, sessions: list[Session], jobs: dict[str, JobReport]) -> None:
        """End the sessions whose jobs are over or gone from the queue, by accounting's word."""
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
            elif report is None:
                self._search_in_time(session)

    def _search_in_time(self, session: Session) -> None:
        """Have a lost session looked for, once in a while."""
        now = self._clock()
        self._searched = {
            known: when for known, when in self._searched.items() if now - when < SEARCH_AGAIN
        }
        if session.id not in self._searched and now - (session.lost or now) > LOST_SETTLED:
            self._searched[session.id] = now
            self._later(session, "search", self._search, "/search")

    def _search(self, session: Session) -> None:
        """Look for the job by its name: its number may be wrong, and then nothing else finds it."""
        report = self._job_of(session)
        if report is None:
            if session.state is State.ENDING:
                self._finish_unknown(session)
        elif report.job_id != session.job_id:
            log.info("session %s: its job is %s, not %s", session.id, report.job_id, session.job_id)
            self._adopt(session, report)

    def _finish_unknown(self, session: Session) -> None:
        """End what its owner wants ended and Slurm has never heard of, or has forgotten."""
        known = {"job_id": session.job_id}
        text = (
            f"Ended by {session.stopped_by or session.owner}. Slurm knows no job of this session."
        )
        ended = self._store.change_if(
            session.id,
            {State.ENDING},
            known,
            state=State.FINISHED,
            ended=self._clock(),
            cause=Cause.CANCELLED,
            end_text=text,
        )
        if ended is not None:
            self._sessions.apps.close_session(session.id)

    def _accounting_may_lag(self, queued: JobReport | None) -> bool:
        """Whether to wait a moment for accounting, which alone knows who cancelled a job."""
        ended = queued.end if queued and queued.state.over else None
        return ended is not None and self._clock() - ended < ACCOUNTING_LAG

    def _end(self, session: Session, report: JobReport) -> None:
        fresh = self._store.get(session.id) or session
        if self._store.change(session.id, LIVE, **apply_report(fresh, report, self._clock())):
            self._sessions.apps.close_session(session.id)

    # A crash between storing and submitting

    def _settle(self, session: Session) -> None:
        """Find out what became of a submission whose answer nobody heard."""
        if session.job_id is not None or self._clock() - session.submitted < SUBMISSION_SETTLED:
            return
        try:
            report = self._job_of(session)
            if report is not None:
                self._adopt(session, report)
            elif session.state is State.ENDING:
                self._finish_unsubmitted(session)
            elif session.attempts >= MAX_ATTEMPTS:
                self._give_up(session, "Slurm did not take it, three times over.")
            else:
                log.info("session %s: submitting again", session.id)
                self._sessions.resubmit(session)
        except InvalidRequest as error:
            self._give_up(session, str(error))

    def _job_of(self, session: Session) -> JobReport | None:
        found = self._scheduler.find(session.id, session.owner)
        found = found or self._scheduler.ended_named(session.id, session.owner, session.created)
        # Slurm may keep a record of a refused attempt beside the job that runs.
        return max(found, key=_standing, default=None)

    def _adopt(self, session: Session, report: JobReport) -> None:
        log.info("session %s: found its job %s", session.id, report.job_id)
        known = {"job_id": session.job_id}
        news = apply_report(session, report, self._clock())
        changed = self._store.change_if(session.id, LIVE, known, **news)
        if changed is not None and changed.state is State.ENDING:
            self._sessions.cancel_again(changed)
        elif changed is not None and changed.state in OVER:
            self._sessions.apps.close_session(session.id)

    def _finish_unsubmitted(self, session: Session) -> None:
        self._store.change(
            session.id,
            {State.ENDING},
            state=State.FINISHED,
            ended=self._clock(),
            cause="cancelled",
            end_text="Ended before it reached Slurm.",
        )

    def _give_up(self, session: Session, text: str) -> None:
        self._sessions.end_batch(session)  # all of a launch or none, before this one's end is told
        self._store.change(
            session.id,
            LIVE,
            state=State.FAILED,
            ended=self._clock(),
            cause="start_failed",
            end_text=text,
        )

    # Housekeeping

    def retry_app_starts(self) -> None:
        """Repeat orders for apps that did not reach their runner."""
        now = self._clock()
        for session in self._store.live():
            if (
                session.state is State.RUNNING
                and session.ready
                and (now - session.ready > ORDER_AGAIN)
            ):
                self._later(session, "orders", self._sessions.app_starter.retry_pending, "/apps")

    def prepare_requeued(self) -> None:
        """Make ready what sessions need that Slurm has put back into the queue."""
        for session in self._store.live():
            if session.state is State.PENDING and not session.token_hash:
                self._later(session, "prepare", self._prepare)

    def _prepare(self, session: Session) -> None:
        if session.state is State.PENDING and not session.token_hash:
            self._sessions.prepare_again(session)

    def clean(self) -> None:
        """Keep the last words of ended sessions, and delete what they left in users' homes."""
        for session in self._store.unclean():
            self._later(session, "clean", self._clean)

    def _clean(self, session: Session) -> None:
        words = None if session.cleaned else self._last_words(session)
        if words is None:
            return
        if words:  # told at once: deleting may take its time
            self._store.change(session.id, {session.state}, **words)
        self._sessions.files.remove_session(session.owner, session.id)
        self._store.change(session.id, {session.state}, cleaned=True)

    def _later(
        self, session: Session, what: str, action: Callable[[Session], object], lane: str = ""
    ) -> None:
        """Have something done that may wait for the session's owner, with what is stored then."""

        def act() -> None:
            fresh = self._store.get(session.id)
            if fresh is not None:
                action(fresh)

        self._sessions.later(session.owner + lane, f"{what} {session.id}", act)

    def _last_words(self, session: Session) -> Changes | None:
        """What the log adds to the explanation of an end; None while it may still come."""
        if not needs_log(session):
            return {}
        since = self._clock() - (session.ended or self._clock())
        try:
            data = self._sessions.files.log_tail(session.owner, session.id, LOG_BYTES)
        except Conflict:  # no file: waiting does not make it one
            return self._told(session, "")
        except PortalError:
            if since < LOG_GIVEN_UP:
                raise
            return self._told(session, "")
        if not data.strip() and since < LOG_LAG:
            return None
        return self._told(session, tail(data))

    @staticmethod
    def _told(session: Session, lines: str) -> Changes:
        words: Changes = {"end_log": lines}
        if session.cause is Cause.START_FAILED and session.stop_requested is None:
            words["end_text"] = start_failure(session.exit_code, lines)
        return words

    def ask_who_cancelled(self) -> None:
        """Ask accounting who cancelled what was cancelled while it was silent."""
        ended = self._store.unexplained(BY_NOBODY_KNOWN, self._clock() - ASK_WHO)
        if not ended:
            return
        known = self._scheduler.ended([s.job_id for s in ended if s.job_id])
        for session in ended:
            report = known.get(session.job_id or "")
            if report is not None and report.user == session.owner and report.state.over:
                cause, text = explain_end(session, report)
                self._store.change(session.id, OVER, cause=cause, end_text=text)

    def read_partitions(self) -> None:
        """Keep the bounds beside the launch form current."""
        partitions = self._scheduler.partitions()
        if partitions:
            self._sessions.status.save_partitions(partitions)
        self._nodes = self._scheduler.nodes()

    def read_limits(self) -> None:
        """Keep Slurm's limits current; those read last stay while accounting is silent."""
        self._sessions.status.save_limits(self._scheduler.limits())


def _standing(report: JobReport) -> tuple[bool, int, str]:
    return not report.state.over, len(report.job_id), report.job_id
