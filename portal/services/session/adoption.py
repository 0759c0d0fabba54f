"""Adopts jobs of sessions that the portal has lost, by an empty database or an older backup.

A running session's runner requests it (`claim`); the worker searches for waiting ones in Slurm's
queue (`adopt_waiting`). In both cases Slurm reports the job's owner, and a file in that user's
home, read as that user, proves that the session belongs to this portal and that the caller is its
runner. So no user gets a session under another name, and an owner can only forge own sessions.
"""

from __future__ import annotations

import hmac
import logging
from datetime import datetime, timedelta

from portal.core.auth.person import hash_secret
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.interfaces.systems import Clock, RecordEvent, Scheduler, UserFiles
from portal.core.jobs.job import Job, JobTab
from portal.core.launch.hub import check_prefix
from portal.core.session.query import ListQuery
from portal.core.session.session import LIVE, OVER, Session, State
from portal.core.session.status import NODE_SILENT_AFTER
from portal.core.session.transitions import STOPPABLE, follow
from portal.core.session_job.adoption import (
    MAX_LIVE_SESSIONS,
    MAX_SPEC,
    SPEC,
    AdoptMessage,
    Claims,
    WaitingSpec,
    adopt,
    is_session_id,
    read_claims,
    read_spec,
    runs_on,
)
from portal.errors import Conflict, Gone, PortalError, SessionUnknown
from portal.services.owner_queue import RunForOwner
from portal.services.session.evidence import Evidence
from portal.store.jobs.store import JobStore
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

ACTOR = "Slipway"
"""The actor in audit events."""
HEARTBEAT_LIMIT = NODE_SILENT_AFTER
"""A session whose runner has reported within this time is not lost: Slurm is not asked."""
RECHECK_AFTER = timedelta(minutes=10)
"""Time before a waiting job that was not a session is checked again."""
RETRY_AFTER = timedelta(minutes=1)
"""The same for a job whose owner's home did not answer."""
MOST_PER_OWNER = 20
"""Waiting jobs of one owner that are checked at once."""


class Adoption:
    """Restores sessions from jobs that the portal submitted."""

    def __init__(
        self,
        *,
        store: SessionStore,
        jobs: JobStore,
        scheduler: Scheduler,
        files: UserFiles,
        record: RecordEvent,
        run_for_owner: RunForOwner,
        callback: str,
        hub_base_url: str,
        clock: Clock,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._files = files
        self._record = record
        self._run_for_owner = run_for_owner
        self._callback = callback
        self._hub_base_url = hub_base_url
        self._clock = clock
        self._evidence = Evidence(jobs=jobs, scheduler=scheduler, files=files, clock=clock)
        self._due: dict[str, datetime] = {}
        """When waiting jobs are checked again, by number."""
        self._refused_owners: set[str] = set()
        """Owners with too many sessions, logged once."""

    # Running sessions

    def claim(self, session_id: str, token: str, message: AdoptMessage) -> Session:
        """Adopt a running session for its runner; returns it, even if it is stored. Idempotent.

        Raises SessionUnknown unless Slurm and its owner's home confirm the caller's message, and
        Gone for a session that is over.
        """
        token_hash = hash_secret(token)
        stored = self._store.get(session_id)
        if stored is not None and hmac.compare_digest(stored.token_hash, token_hash):
            if stored.state in OVER or stored.state is State.ENDING:
                raise Gone("The session is over.")
            return stored
        if (
            stored is not None
            and stored.usage_at
            and self._clock() - stored.usage_at < HEARTBEAT_LIMIT
        ):
            raise SessionUnknown
        report = self._proven(session_id, token_hash, message)
        if stored is not None:
            return self._renew_token(stored, report, token_hash)
        return self._store_session(session_id, report, read_claims(message.about), token_hash, {})

    def _proven(self, session_id: str, token_hash: str, message: AdoptMessage) -> JobReport:
        """The job that is running the caller, as Slurm and its owner's home confirm."""
        if not is_session_id(session_id) or not self._is_running(session_id, message):
            raise SessionUnknown
        report = self._evidence.job(session_id, JobTab.RUNNING)
        if (
            report is None
            or report.job_id != message.job_id
            or not runs_on(report, message.node)
            or not hmac.compare_digest(self._evidence.proof(report.user, session_id), token_hash)
        ):
            raise SessionUnknown
        return report

    def _is_running(self, session_id: str, message: AdoptMessage) -> bool:
        """Whether this job runs there by the last poll, so that other calls cause no query."""
        return any(
            job.id == message.job_id
            and _may_be(job, session_id)
            and runs_on(job.report, message.node)
            for job in self._jobs.get_many([message.job_id])
        )

    def _renew_token(self, session: Session, report: JobReport, token_hash: str) -> Session:
        """Accept the runner of a stored session whose token is newer than the backup."""
        if (session.owner, session.job_id) != (report.user, report.job_id):
            raise SessionUnknown
        changed = self._store.change_if(
            session.id, STOPPABLE, {"job_id": session.job_id}, token_hash=token_hash
        )
        if changed is None:
            raise SessionUnknown
        self._record_adoption(changed, "its runner has another token")
        return changed

    # Waiting sessions

    def adopt_waiting(self) -> None:
        """Check the waiting jobs that may be lost sessions, each in its owner's queue."""
        self._jobs.link_sessions()
        jobs = self._jobs.without_session(MOST_PER_OWNER)
        now, ids = self._clock(), {job.id for job in jobs}
        for job_id, due in list(self._due.items()):
            if job_id not in ids or due <= now:
                self._due.pop(job_id, None)
        for job in jobs:
            if job.id not in self._due:
                self._due[job.id] = now + RECHECK_AFTER
                self._check_later(job)

    def _check_later(self, job: Job) -> None:
        name = f"adopt {job.id}"
        self._run_for_owner(f"{job.report.user}/adopt", name, lambda: self._check(job))

    def _check(self, job: Job) -> None:
        """Adopt a waiting job if its owner's home has its specification by this portal."""
        session_id, owner = job.texts.name, job.report.user
        try:
            data = self._files.session_file(owner, session_id, SPEC, MAX_SPEC)
        except PortalError:
            self._due[job.id] = self._clock() + RETRY_AFTER
            raise
        spec = read_spec(data, session_id, self._callback)
        if spec is not None and self._store.get(session_id) is None:
            self._adopt_waiting(session_id, job, spec)

    def _adopt_waiting(self, session_id: str, job: Job, spec: WaitingSpec) -> None:
        report = self._evidence.job(session_id, JobTab.PENDING)
        # If it has started in the meantime, its runner calls `claim`.
        if report is None or report.job_id != job.id or report.user != job.report.user:
            return
        if report.state is JobState.PENDING:
            token_hash = hash_secret(spec.token)
            self._store_session(session_id, report, spec.claims, token_hash, dict(spec.env))

    # Both

    def _store_session(
        self,
        session_id: str,
        report: JobReport,
        claims: Claims,
        token_hash: str,
        env: dict[str, str],
    ) -> Session:
        """Store the session; recorded once in the audit log and the log."""
        self._refuse_too_many(report.user)
        now = self._clock()
        session = adopt(session_id, report, self._allowed(claims, report.user), token_hash, now)
        stored = self._stored(session, env)
        changed = self._store.apply(session_id, follow(stored, report, now))
        self._record_adoption(stored, "adopted")
        return changed or stored

    def _stored(self, session: Session, env: dict[str, str]) -> Session:
        try:
            return self._store.add([session], None, "", env)[0][0]
        except Conflict:
            # A concurrent call was faster, or JupyterHub has started another server at its path.
            if self._store.get(session.id) is not None:
                raise SessionUnknown from None
            return self._store.add([session.model_copy(update={"hub_prefix": ""})], None, "", env)[
                0
            ][0]

    def _allowed(self, claims: Claims, owner: str) -> Claims:
        """The claims, without the path of another user's server."""
        prefix = claims.hub_prefix
        if prefix and check_prefix(prefix, owner, self._hub_base_url):
            return claims.model_copy(update={"hub_prefix": ""})
        return claims

    def _refuse_too_many(self, owner: str) -> None:
        counts = self._store.counts(ListQuery(owner=owner), self._clock())
        if sum(counts.get(state, 0) for state in LIVE) < MAX_LIVE_SESSIONS:
            self._refused_owners.discard(owner)
            return
        if owner not in self._refused_owners:
            self._refused_owners.add(owner)
            log.warning("%s has %d sessions: no more are adopted", owner, MAX_LIVE_SESSIONS)
        raise SessionUnknown

    def _record_adoption(self, session: Session, text: str) -> None:
        log.warning("session %s of %s, job %s: %s", session.id, session.owner, session.job_id, text)
        detail = f"{session.name} of {session.owner}, job {session.job_id}: {text}"
        self._record(ACTOR, "session.adopt", session.id, detail)


def _may_be(job: Job, session_id: str) -> bool:
    """Whether a live job may be this session's."""
    single = not job.array_id and not job.het_id
    return single and not job.report.state.over and job.texts.name == session_id
