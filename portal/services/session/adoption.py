"""Adopts jobs of sessions that the portal has lost, by an empty database or an older backup.

A running session's runner asks for it (`claim`); what waits in Slurm's queue is looked for by the
worker (`adopt_waiting`). In both cases Slurm says whose job it is, and a file in that user's
home, read as that user, proves that the session is this portal's and that the caller is its
runner. So nobody gets a session under somebody else's name, and an owner can only imitate own ones.
"""

from __future__ import annotations

import hmac
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.auth.person import hash_secret
from portal.core.cluster.jobs import JobReport, JobState
from portal.core.interfaces.systems import Clock, RecordEvent, Scheduler, UserFiles
from portal.core.job.adoption import (
    MAX_LIVE_SESSIONS,
    MAX_PROOF,
    MAX_SPEC,
    PROOF,
    SPEC,
    AdoptMessage,
    Claims,
    WaitingSpec,
    adopt,
    earliest_job,
    is_session_id,
    read_claims,
    read_spec,
    runs_on,
)
from portal.core.jobs.job import Job
from portal.core.launch.hub import check_prefix
from portal.core.session.query import ListQuery
from portal.core.session.session import LIVE, OVER, Session, State
from portal.core.session.transitions import STOPPABLE, follow
from portal.errors import Conflict, Gone, PortalError, SessionUnknown
from portal.services.owner_queue import RunForOwner
from portal.store.jobs.store import JobStore
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

ACTOR = "Slipway"
"""The actor in the journal."""
BELIEVED = timedelta(seconds=5)
"""How long what Slurm and the owner's file said is used again: anybody may call, as often as they
like, and with the id of any job that they see in the queue."""
HEARD = timedelta(minutes=1)
"""A session whose own runner has reported so recently is not lost: nothing is asked about it."""
LOOKED = timedelta(minutes=10)
"""After this a waiting job that was found not to be a session is looked at again."""
AGAIN = timedelta(minutes=1)
"""After this one is looked at again whose owner's home did not answer."""
EACH = 20
"""Waiting jobs of one owner that are looked at, at once."""


@dataclass(frozen=True)
class _Evidence:
    """The job that a name belongs to, and the proof in its owner's home."""

    at: datetime
    report: JobReport | None
    proof: str


class Adoption:
    """Makes sessions of jobs that are the portal's own."""

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
        self._scheduler = scheduler
        self._files = files
        self._record = record
        self._run_for_owner = run_for_owner
        self._callback = callback
        self._hub_base_url = hub_base_url
        self._clock = clock
        self._seen: dict[str, _Evidence] = {}
        self._look_at: dict[str, datetime] = {}
        """When waiting jobs are looked at again, by number."""
        self._refused: set[str] = set()
        """Owners with too many sessions, who are named in the log once."""

    # Running sessions

    def claim(self, session_id: str, token: str, message: AdoptMessage) -> Session:
        """Take a running session in, for its runner; returns it, also if it is known. Idempotent.

        Raises SessionUnknown unless Slurm and its owner's home confirm what the caller says, and
        Gone for a session that is over.
        """
        token_hash = hash_secret(token)
        known = self._store.get(session_id)
        if known is not None and hmac.compare_digest(known.token_hash, token_hash):
            if known.state in OVER or known.state is State.ENDING:
                raise Gone("The session is over.")
            return known
        if known is not None and known.usage_at and self._clock() - known.usage_at < HEARD:
            raise SessionUnknown
        report = self._proven(session_id, token_hash, message)
        if known is not None:
            return self._renew_token(known, report, token_hash)
        return self._take_in(session_id, report, read_claims(message.about), token_hash, {})

    def _proven(self, session_id: str, token_hash: str, message: AdoptMessage) -> JobReport:
        """The job that is running the caller, as Slurm and its owner's home confirm."""
        if not is_session_id(session_id) or not self._is_running(session_id, message):
            raise SessionUnknown
        found = self._evidence(session_id)
        report = found.report
        if (
            report is None
            or report.job_id != message.job_id
            or not runs_on(report, message.node)
            or not hmac.compare_digest(found.proof, token_hash)
        ):
            raise SessionUnknown
        return report

    def _is_running(self, session_id: str, message: AdoptMessage) -> bool:
        """Whether the worker has seen this job run there: others cost Slurm nothing."""
        return any(
            job.id == message.job_id
            and _may_be(job, session_id)
            and runs_on(job.report, message.node)
            for job in self._jobs.get_many([message.job_id])
        )

    def _evidence(self, session_id: str) -> _Evidence:
        now = self._clock()
        self._seen = {one: e for one, e in self._seen.items() if now - e.at < BELIEVED}
        known = self._seen.get(session_id)
        if known is None:
            report = earliest_job(self._scheduler.named(session_id))
            proof = b""
            if report is not None:
                proof = self._files.session_file(report.user, session_id, PROOF, MAX_PROOF)
            known = _Evidence(now, report, proof.decode("ascii", "replace").strip())
            self._seen[session_id] = known
        return known

    def _renew_token(self, known: Session, report: JobReport, token_hash: str) -> Session:
        """Accept the runner of a known session, whose token the backup did not have yet."""
        if (known.owner, known.job_id) != (report.user, report.job_id):
            raise SessionUnknown
        changed = self._store.change_if(
            known.id, STOPPABLE, {"job_id": known.job_id}, token_hash=token_hash
        )
        if changed is None:
            raise SessionUnknown
        self._tell(changed, "its runner has another token")
        return changed

    # Waiting sessions

    def adopt_waiting(self) -> None:
        """Look at the waiting jobs that may be lost sessions, each in its owner's queue."""
        self._jobs.link_sessions()
        found = self._jobs.without_session(EACH)
        now, ids = self._clock(), {job.id for job in found}
        for job_id, due in list(self._look_at.items()):
            if job_id not in ids or due <= now:
                self._look_at.pop(job_id, None)
        for job in found:
            if job.id not in self._look_at:
                self._look_at[job.id] = now + LOOKED
                self._look_later(job)

    def _look_later(self, job: Job) -> None:
        name = f"adopt {job.id}"
        self._run_for_owner(f"{job.report.user}/adopt", name, lambda: self._look(job))

    def _look(self, job: Job) -> None:
        """Take a waiting job in, if its owner's home has its specification, of this portal."""
        session_id, owner = job.texts.name, job.report.user
        try:
            data = self._files.session_file(owner, session_id, SPEC, MAX_SPEC)
        except PortalError:
            self._look_at[job.id] = self._clock() + AGAIN
            raise
        spec = read_spec(data, session_id, self._callback)
        if spec is not None and self._store.get(session_id) is None:
            self._adopt_waiting(session_id, job, spec)

    def _adopt_waiting(self, session_id: str, job: Job, spec: WaitingSpec) -> None:
        report = earliest_job(self._scheduler.named(session_id))
        # If it has started meanwhile, its runner calls.
        if report is None or report.job_id != job.id or report.user != job.report.user:
            return
        if report.state is JobState.PENDING:
            token_hash = hash_secret(spec.token)
            self._take_in(session_id, report, spec.claims, token_hash, dict(spec.env))

    # Both

    def _take_in(
        self,
        session_id: str,
        report: JobReport,
        claims: Claims,
        token_hash: str,
        env: dict[str, str],
    ) -> Session:
        """Store the session; the journal and the log say so, once."""
        self._refuse_too_many(report.user)
        now = self._clock()
        made = adopt(session_id, report, self._allowed(claims, report.user), token_hash, now)
        stored = self._stored(made, env)
        changed = self._store.apply(session_id, follow(stored, report, now))
        self._tell(stored, "adopted")
        return changed or stored

    def _stored(self, session: Session, env: dict[str, str]) -> Session:
        try:
            return self._store.add([session], None, "", env)[0][0]
        except Conflict:
            # Another call was faster, or JupyterHub has started another server at its path.
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
            self._refused.discard(owner)
            return
        if owner not in self._refused:
            self._refused.add(owner)
            log.warning("%s has %d sessions: no more are adopted", owner, MAX_LIVE_SESSIONS)
        raise SessionUnknown

    def _tell(self, session: Session, what: str) -> None:
        log.warning("session %s of %s, job %s: %s", session.id, session.owner, session.job_id, what)
        detail = f"{session.name} of {session.owner}, job {session.job_id}: {what}"
        self._record(ACTOR, "session.adopt", session.id, detail)


def _may_be(job: Job, session_id: str) -> bool:
    """Whether a live job may be this session's."""
    single = not job.array_id and not job.het_id
    return single and not job.report.state.over and job.texts.name == session_id
