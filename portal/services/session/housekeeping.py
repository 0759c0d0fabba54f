"""Periodic tasks of the worker on sessions that need no poll of the queue."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.interfaces.systems import Clock, Scheduler, UserFiles
from portal.core.session.end_reasons import (
    CANCELLED_BY_UNKNOWN,
    LOG_BYTES,
    LOG_SAYS,
    ended_by_owner,
    explain_end,
    last_line,
    needs_log,
    start_failure,
    tail,
)
from portal.core.session.session import OVER, Cause, Facts, Session, State
from portal.errors import Conflict, HomeUnusable, PortalError
from portal.services.apps.starter import AppStarter
from portal.services.launch.launcher import Launcher
from portal.services.owner_queue import SessionQueue
from portal.store.samples import SampleStore
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

START_INTERVAL = timedelta(seconds=5)
"""Time before a start request that did not reach its runner is repeated."""
SLOW_START = timedelta(seconds=20)
"""Starting time after which a session's log is read: most are ready after four seconds."""
LAST_BYTES = 4096
"""Bytes read from the end of such a log, for its last line."""
LOG_LAG = timedelta(seconds=5)
"""How long to wait for a log that does not exist yet: network file systems have a delay."""
LOG_GIVEN_UP = timedelta(minutes=10)
ACCOUNTING_GIVEN_UP = timedelta(days=1)
"""How long accounting is queried for the user who cancelled a job."""
LONGEST_PAUSE = timedelta(minutes=10)
"""Longest pause between attempts to delete a session's files: their owner may have left."""


@dataclass(frozen=True)
class _Pause:
    """The pause before the files of a session are deleted in another attempt."""

    length: timedelta
    until: datetime


class Housekeeping:
    """Repeats lost requests, and cleans up after ended sessions."""

    def __init__(
        self,
        *,
        store: SessionStore,
        samples: SampleStore,
        scheduler: Scheduler,
        files: UserFiles,
        launcher: Launcher,
        app_starter: AppStarter,
        session_queue: SessionQueue,
        variables_retention: timedelta,
        samples_retention: timedelta,
        clock: Clock,
    ) -> None:
        self._store = store
        self._samples = samples
        self._scheduler = scheduler
        self._files = files
        self._launcher = launcher
        self._app_starter = app_starter
        self._session_queue = session_queue
        self._variables_retention = variables_retention
        self._samples_retention = samples_retention
        self._clock = clock
        self._pauses: dict[str, _Pause] = {}
        """By session; each failure doubles the pause."""

    def retry_app_starts(self) -> None:
        """Repeat start requests that did not reach their runner."""
        for session in self._store.with_wanted_apps(self._clock() - START_INTERVAL):
            self._session_queue.run(session, "starts", self._app_starter.retry_pending, "/apps")

    def prepare_requeued(self) -> None:
        """Prepare the folders of requeued sessions."""
        for session in self._store.requeued():
            self._session_queue.run(session, "prepare", self._prepare)

    def _prepare(self, session: Session) -> None:
        if session.state is State.PENDING and not session.token_hash:
            self._launcher.prepare_requeued(session)

    def read_slow_starts(self) -> None:
        """Show the last line of their logs for sessions that are slow to start."""
        for session in self._store.starting_since(self._clock() - SLOW_START):
            # The progress of an image that is being pulled says more.
            if not session.progress or session.progress.startswith(LOG_SAYS):
                self._session_queue.run(session, "slow start", self._read_slow_start)

    def _read_slow_start(self, session: Session) -> None:
        if session.state is not State.STARTING:
            return
        words = last_line(self._files.log_tail(session.owner, session.id, LAST_BYTES))
        if words and not session.progress:  # once: administrators may not read users' logs
            log.warning(
                "session %s of %s on %s: %s", session.id, session.owner, session.node, words
            )
        if words and words != session.progress:
            self._store.change(session.id, {State.STARTING}, progress=words)

    def clean(self) -> None:
        """Store the last lines of ended sessions' logs, and delete their files in users' homes."""
        unclean, now = self._store.unclean(), self._clock()
        for session_id in set(self._pauses) - {session.id for session in unclean}:
            self._pauses.pop(session_id, None)
        for session in unclean:
            pause = self._pauses.get(session.id)
            if pause is None or pause.until <= now:
                self._session_queue.run(session, "clean", self._clean)

    def _clean(self, session: Session) -> None:
        try:
            self._clean_now(session)
        except PortalError:
            last = self._pauses.get(session.id)
            length = min(last.length * 2, LONGEST_PAUSE) if last else timedelta(seconds=1)
            self._pauses[session.id] = _Pause(length, self._clock() + length)
            raise

    def _clean_now(self, session: Session) -> None:
        facts = None if session.cleaned else self._explanation(session)
        if facts is None:
            return
        if facts:  # stored first: deleting may take long
            self._store.change(session.id, {session.state}, **facts)
        self._files.remove_session(session.owner, session.id)
        self._store.change(session.id, {session.state}, cleaned=True)

    def _explanation(self, session: Session) -> Facts | None:
        """The explanation of an end from the log; None while the log may still appear."""
        if not needs_log(session):
            return Facts()
        since = self._clock() - (session.ended or self._clock())
        try:
            data = self._files.log_tail(session.owner, session.id, LOG_BYTES)
        except PortalError as error:
            # If it is not a regular file, waiting does not help; a home may be mounted again.
            final = isinstance(error, Conflict) and not isinstance(error, HomeUnusable)
            if since < LOG_GIVEN_UP and not final:
                raise
            return _explained(session, "")
        if not data.strip() and since < LOG_LAG:
            return None
        return _explained(session, tail(data))

    def ask_who_cancelled(self) -> None:
        """Read from accounting who cancelled the sessions for which it did not answer in time."""
        ended = self._store.unexplained(CANCELLED_BY_UNKNOWN, self._clock() - ACCOUNTING_GIVEN_UP)
        if not ended:
            return
        reports = self._scheduler.ended([s.job_id for s in ended if s.job_id])
        for session in ended:
            report = reports.get(session.job_id or "")
            if report is not None and report.user == session.owner and report.state.over:
                cause, text = explain_end(session, report)
                facts = Facts(cause=cause, end_text=text)
                if ended_by_owner(session, report, cause):
                    facts["end_seen"] = session.ended
                self._store.change(session.id, OVER, **facts)

    def forget_variables(self) -> None:
        """Delete the environment variables of sessions that ended long enough ago."""
        self._store.forget_variables(self._clock() - self._variables_retention)

    def forget_hub_env(self) -> None:
        """Delete the variables of JupyterHub's servers in sessions that are over."""
        self._store.forget_hub_env()

    def forget_samples(self) -> None:
        """Delete the use over time of sessions that ended long enough ago."""
        self._samples.forget_samples(self._clock() - self._samples_retention)


def _explained(session: Session, lines: str) -> Facts:
    facts = Facts(end_log=lines)
    if session.cause is Cause.START_FAILED and session.stop_requested is None:
        facts["end_text"] = start_failure(session.exit_code, lines)
    return facts
