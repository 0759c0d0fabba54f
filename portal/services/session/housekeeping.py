"""The worker's periodic work on sessions that needs no poll of the queue."""

from __future__ import annotations

from datetime import timedelta

from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.systems import Clock, Scheduler, UserFiles
from portal.core.session.end_reasons import (
    CANCELLED_BY_UNKNOWN,
    LOG_BYTES,
    explain_end,
    needs_log,
    start_failure,
    tail,
)
from portal.core.session.session import OVER, Cause, Facts, Session, State
from portal.errors import Conflict, PortalError
from portal.services.apps.starter import AppStarter
from portal.services.launch.launcher import Launcher
from portal.services.owner_queue import SessionQueue

START_INTERVAL = timedelta(seconds=5)
"""After this a start request that did not reach its runner is repeated."""
LOG_LAG = timedelta(seconds=5)
"""How long a log that is not there yet is waited for: file servers take their time."""
LOG_GIVEN_UP = timedelta(minutes=10)
ACCOUNTING_GIVEN_UP = timedelta(days=1)
"""How long accounting is asked who cancelled a job."""


class Housekeeping:
    """Repeats what did not get through, and cleans up after sessions that are over."""

    def __init__(
        self,
        *,
        store: SessionStore,
        scheduler: Scheduler,
        files: UserFiles,
        launcher: Launcher,
        app_starter: AppStarter,
        session_queue: SessionQueue,
        variables_kept: timedelta,
        clock: Clock,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._files = files
        self._launcher = launcher
        self._app_starter = app_starter
        self._session_queue = session_queue
        self._variables_kept = variables_kept
        self._clock = clock

    def retry_app_starts(self) -> None:
        """Repeat start requests for apps that did not reach their runner."""
        now = self._clock()
        for session in self._store.live():
            called = session.state is State.RUNNING and session.ready is not None
            if called and now - (session.ready or now) > START_INTERVAL:
                self._session_queue.run(session, "orders", self._app_starter.retry_pending, "/apps")

    def prepare_requeued(self) -> None:
        """Prepare the folders of sessions that Slurm has put back into the queue."""
        for session in self._store.live():
            if session.state is State.PENDING and not session.token_hash:
                self._session_queue.run(session, "prepare", self._prepare)

    def _prepare(self, session: Session) -> None:
        if session.state is State.PENDING and not session.token_hash:
            self._launcher.prepare_requeued(session)

    def clean(self) -> None:
        """Keep the last lines of ended sessions' logs, and delete what they left in homes."""
        for session in self._store.unclean():
            self._session_queue.run(session, "clean", self._clean)

    def _clean(self, session: Session) -> None:
        words = None if session.cleaned else self._last_words(session)
        if words is None:
            return
        if words:  # stored at once: deleting may take its time
            self._store.change(session.id, {session.state}, **words)
        self._files.remove_session(session.owner, session.id)
        self._store.change(session.id, {session.state}, cleaned=True)

    def _last_words(self, session: Session) -> Facts | None:
        """What the log adds to the explanation of an end; None while it may still come."""
        if not needs_log(session):
            return Facts()
        since = self._clock() - (session.ended or self._clock())
        try:
            data = self._files.log_tail(session.owner, session.id, LOG_BYTES)
        except Conflict:  # no file: waiting does not make it one
            return _explained(session, "")
        except PortalError:
            if since < LOG_GIVEN_UP:
                raise
            return _explained(session, "")
        if not data.strip() and since < LOG_LAG:
            return None
        return _explained(session, tail(data))

    def ask_who_cancelled(self) -> None:
        """Ask accounting who cancelled what was cancelled while it was silent."""
        ended = self._store.unexplained(CANCELLED_BY_UNKNOWN, self._clock() - ACCOUNTING_GIVEN_UP)
        if not ended:
            return
        known = self._scheduler.ended([s.job_id for s in ended if s.job_id])
        for session in ended:
            report = known.get(session.job_id or "")
            if report is not None and report.user == session.owner and report.state.over:
                cause, text = explain_end(session, report)
                self._store.change(session.id, OVER, cause=cause, end_text=text)

    def forget_variables(self) -> None:
        """Delete the environment variables of sessions that ended long enough ago."""
        self._store.forget_variables(self._clock() - self._variables_kept)


def _explained(session: Session, lines: str) -> Facts:
    facts = Facts(end_log=lines)
    if session.cause is Cause.START_FAILED and session.stop_requested is None:
        facts["end_text"] = start_failure(session.exit_code, lines)
    return facts
