"""Recovers sessions whose job is uncertain: a submission without an answer, or a job that is
neither in the queue nor in accounting."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from portal.core.cluster.job_reports import JobReport
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.session.session import OVER, Session, State
from portal.core.session.transitions import (
    adopt,
    finish_unknown,
    finish_unsubmitted,
)
from portal.errors import HomeUnusable, InvalidRequest
from portal.services.launch.launcher import Launcher
from portal.services.teardown import Teardown
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

SUBMISSION_SETTLED = timedelta(seconds=60)
"""After this no sbatch of an earlier attempt can still be running (it is killed after 20 s)."""
LOST_SETTLED = timedelta(seconds=60)
"""How long queue and accounting must have lacked a job before it is searched by its name."""
SEARCH_INTERVAL = timedelta(seconds=30)
MAX_ATTEMPTS = 3


class Recovery:
    """Finds jobs by their name, and resubmits sessions that never reached Slurm."""

    def __init__(
        self,
        *,
        store: SessionStore,
        scheduler: Scheduler,
        launcher: Launcher,
        teardown: Teardown,
        clock: Clock,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._launcher = launcher
        self._teardown = teardown
        self._clock = clock
        self._searched: dict[str, datetime] = {}
        """When lost sessions were last searched for."""

    def is_due(self, session: Session) -> bool:
        """Whether a submission without an answer is old enough to search for its job."""
        unanswered = session.job_id is None
        return unanswered and self._clock() - session.submitted >= SUBMISSION_SETTLED

    def settle(self, session: Session) -> None:
        """Find out the outcome of a submission whose answer was lost."""
        if not self.is_due(session):
            return
        try:
            report = self._job_of(session)
            if report is not None:
                self._adopt(session, report)
            elif session.state is State.ENDING:
                self._store.apply(session.id, finish_unsubmitted(session, self._clock()))
            elif session.attempts >= MAX_ATTEMPTS:
                self._give_up(session, "Slurm did not accept it in three attempts.")
            else:
                log.info("session %s: submitting again", session.id)
                self._launcher.resubmit(session)
        except (InvalidRequest, HomeUnusable) as error:
            self._give_up(session, str(error))

    def should_search(self, session: Session) -> bool:
        """Whether to search for a lost session now; True once per interval."""
        now = self._clock()
        self._searched = {
            id: searched
            for id, searched in self._searched.items()
            if now - searched < SEARCH_INTERVAL
        }
        if session.id in self._searched or now - (session.lost or now) <= LOST_SETTLED:
            return False
        self._searched[session.id] = now
        return True

    def search(self, session: Session) -> None:
        """Search for the job by its name, in case the stored job id is wrong."""
        report = self._job_of(session)
        if report is None:
            if session.state is State.ENDING:
                self._finish_unknown(session)
        elif report.job_id != session.job_id:
            log.info("session %s: its job is %s, not %s", session.id, report.job_id, session.job_id)
            self._adopt(session, report)

    def _job_of(self, session: Session) -> JobReport | None:
        reports = self._scheduler.find(session.id, session.owner)
        reports = reports or self._scheduler.ended_named(session.id, session.owner, session.created)
        # Slurm may have a record of a refused attempt besides the running job.
        return max(reports, key=_precedence, default=None)

    def _adopt(self, session: Session, report: JobReport) -> None:
        log.info("session %s: found its job %s", session.id, report.job_id)
        changed = self._store.apply(session.id, adopt(session, report, self._clock()))
        if changed is not None and changed.state is State.ENDING:
            self._teardown.cancel_later(changed)
        elif changed is not None and changed.state in OVER:
            self._teardown.close_apps(session.id)

    def _finish_unknown(self, session: Session) -> None:
        if self._store.apply(session.id, finish_unknown(session, self._clock())):
            self._teardown.close_apps(session.id)

    def _give_up(self, session: Session, text: str) -> None:
        # All or none: the whole launch ends, in one transaction.
        batch, lost = session.batch or session.id, session.id
        self._teardown.cancel(self._launcher.end_batch(batch, text, lambda each: each.id == lost))


def _precedence(report: JobReport) -> tuple[bool, int, str]:
    return not report.state.over, len(report.job_id), report.job_id
