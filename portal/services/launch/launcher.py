"""Launches sessions: stored first, then submitted; all sessions of a launch or none."""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import NamedTuple

from portal.core.apps.catalog import Catalog, Image
from portal.core.auth.person import Person, hash_secret
from portal.core.interfaces.monitoring import Measures
from portal.core.interfaces.systems import Certificates, Clock, Scheduler, UserFiles
from portal.core.launch.names import names_for
from portal.core.launch.request import MAX_COUNT
from portal.core.launch.site_files import RefusedFile
from portal.core.notices.maintenance import UnderMaintenance
from portal.core.session.relaunch import describe_launch
from portal.core.session.session import LIVE, Session, State
from portal.core.session.transitions import (
    Transition,
    claim_again,
    claim_first,
    fail_to_start,
    stop,
    submitted,
)
from portal.core.session_job.adoption import PROOF_INSIDE, claims_of
from portal.core.session_job.batch_script import render_script
from portal.core.session_job.description import JobSettings, build_job
from portal.core.session_job.runner_protocol import runner_spec
from portal.errors import (
    GresUnknown,
    HomeUnusable,
    InvalidRequest,
    NodesUnknown,
    OutcomeUnknown,
    PortalError,
    TooMany,
    Unavailable,
)
from portal.node.common.fgpu import to_number
from portal.services.admin.administration import Administration, called_from, caller_address
from portal.services.cluster import GPUS_UNKNOWN_YET, NODES_UNKNOWN_YET, Cluster, refuse_while_down
from portal.services.launch.checks import Plan
from portal.services.launch.submissions import Submissions
from portal.services.launch.waiting import WaitingSessions
from portal.services.storage import GrantMounts
from portal.services.teardown import Teardown
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

MOST_SUBMITTING = 3 * MAX_COUNT
"""Sessions of one person that are stored and not in Slurm yet: their launches are answered before
Slurm has them, and take their turn with other people's."""
TOO_MANY = (
    "So many of your sessions have not reached Slurm yet that no more are taken. Wait until some "
    "are queued, then launch again."
)
UNDONE = "Slipway, since Slurm did not accept all sessions of this launch"


class Draft(NamedTuple):
    """The session and batch script that a launch would submit."""

    session: Session
    script: str


@dataclass
class _Launch:
    """A launch that is stored, and how far its submission has come."""

    person: Person
    address: str
    """The client's."""
    sessions: Sequence[Session]
    tokens: Sequence[str]
    image: Image
    env: Mapping[str, str]
    unclear: set[str] = field(default_factory=set)
    """Sessions whose jobs Slurm may have."""
    latest: str = ""
    """The session whose submission was begun last."""

    @property
    def batch(self) -> str:
        return self.sessions[0].id

    def is_unsubmitted(self, session: Session) -> bool:
        """Whether nobody has submitted one, as stored, after Slurm refused the latest.

        The worker may be submitting those of which it has begun an attempt.
        """
        own = int(session.id == self.latest)
        return session.job_id is None and session.attempts == own and session.id not in self.unclear


class Launcher:
    """Creates sessions and submits their jobs."""

    def __init__(
        self,
        *,
        store: SessionStore,
        cluster: Cluster,
        scheduler: Scheduler,
        teardown: Teardown,
        files: UserFiles,
        certificates: Certificates,
        catalog: Callable[[], Catalog],
        clock: Clock,
        job_settings: JobSettings,
        administration: Administration,
        registry_login: Callable[[str, str], Mapping[str, str] | None],
        may_administer: Callable[[str], bool],
        grant: GrantMounts,
        measures: Measures,
        launch_begin: Callable[[Person], datetime | None],
        submissions: Submissions,
        waiting: WaitingSessions,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._scheduler = scheduler
        self._teardown = teardown
        self._files = files
        self._certificates = certificates
        self._catalog = catalog
        self._clock = clock
        self._job_settings = job_settings
        self._administration = administration
        self._registry_login = registry_login
        self._may_administer = may_administer
        self._grant = grant
        self._measures = measures
        self._launch_begin = launch_begin
        self._submissions = submissions
        self._waiting = waiting

    def launch(self, plan: Plan, preset: str = "") -> list[Session]:
        """Store the sessions, then submit their jobs; idempotent for the same key.

        `preset` names the preset that the request comes from, if any.

        Raises InvalidRequest, HomeUnusable, TooMany (nothing is stored), Conflict (the key was used
        for a different launch), Unavailable (nothing is stored; also during maintenance without a
        known end). After the time that the request waits (submissions.py) the sessions are returned
        SUBMITTING, and a later refusal is their end, FAILED. If Slurm's answer is lost, the session
        stays and the reconciler finds its job: a launch never creates two jobs and never loses one.
        """
        person, request = plan.view.person, plan.request
        # A repeated request returns its sessions even if maintenance has begun since.
        begin = self._launch_begin(person) if plan.is_new else None
        if plan.is_new and len(plan.view.submitting) + request.count > MOST_SUBMITTING:
            raise TooMany(TOO_MANY)
        refuse_while_down(plan.view.cluster.status, self._clock())
        # Missing and unshared folders are refused; folders shared read-only are mounted so.
        mounts = self._grant(person, request.mounts, request.image or "")
        granted = request.model_copy(update={"mounts": mounts})
        tokens = [secrets.token_urlsafe(32) for _ in range(request.count)]
        created = self._sessions(plan._replace(request=granted), tokens, begin, preset)
        # Hashed, since the request may contain passwords.
        fingerprint = hash_secret(request.model_dump_json())
        hub_env = request.hub.env if request.hub else {}
        stored, new = self._store.add(created, plan.key, fingerprint, request.env, hub_env)
        if not new:
            return stored
        self._note(person, "session.launch", stored)
        launch = _Launch(
            person, caller_address.get(), stored, tokens, plan.decision.image, request.env
        )
        self._waiting.add([session.id for session in stored])
        try:
            submitted_sessions = self._submissions.run(
                person.name,
                f"submit {launch.batch}",
                lambda: self._submit_all(launch),
                lambda error: self._fail_late(launch, error),
            )
        except (InvalidRequest, HomeUnusable, Unavailable) as error:
            self._undo(launch, error)
            self._note(person, "session.refused", stored, error.text)
            raise
        return stored if submitted_sessions is None else submitted_sessions

    def _fail_late(self, launch: _Launch, error: PortalError) -> None:
        """End a launch that was answered before Slurm refused it; its sessions say why.

        Those whose jobs Slurm has, or may have, are ending until it says that these are over. After
        any other error all sessions without a job wait for the reconciler, which finds their jobs
        or submits them after a minute: what failed for one would fail for the next.
        """
        if not isinstance(error, (InvalidRequest, HomeUnusable)):
            log.warning("launch %s: the worker submits what is left: %s", launch.batch, error)
            return
        with called_from(launch.address):
            self._note(launch.person, "session.refused", launch.sessions, error.text)
        self._teardown.cancel(self.end_batch(launch.batch, error.text, launch.is_unsubmitted))

    def _note(
        self, person: Person, action: str, created: Sequence[Session], detail: str = ""
    ) -> None:
        lines = [(session.id, detail or describe_launch(session)) for session in created]
        self._administration.record_all(person.name, action, lines)

    def draft(self, plan: Plan) -> Draft:
        """The first session that a launch would create, and its batch script; nothing is stored.

        Maintenance without a known end does not refuse it.
        """
        begin = None
        with suppress(UnderMaintenance):
            begin = self._launch_begin(plan.view.person)
        single = plan._replace(request=plan.request.model_copy(update={"count": 1}))
        session = self._sessions(single, [""], begin)[0]
        return Draft(session, self._script(session, plan.decision.image))

    def _sessions(
        self, plan: Plan, tokens: Sequence[str], begin: datetime | None, preset: str = ""
    ) -> list[Session]:
        view, request, decision = plan.view, plan.request, plan.decision
        now, image, gpu = self._clock(), decision.image, decision.gpu
        ids = [uuid.uuid4().hex for _ in tokens]
        names = names_for(request.name, request.count, secrets.randbits(32))
        return [
            Session(
                id=identifier,
                batch=ids[0],
                name=name,
                named=request.name is not None,
                owner=view.person.name,
                environment=image.environment,
                version=image.version,
                image=request.image or "",
                cpus=request.resources.cpus,
                memory_mb=request.resources.memory,
                shared_memory_mb=request.resources.shared_memory,
                shared_memory_cap_mb=view.settings.rules.max_shared_memory_mb,
                fgpu=to_number(gpu.fgpu) if gpu else None,
                gpu_kind=gpu.kind if gpu else "",
                gres=gpu.gres if gpu else "",
                gpu_memory_mb=gpu.memory_mb if gpu else None,
                gpu_sm_percent=gpu.sm_percent if gpu else None,
                env_names=tuple(request.env),
                mounts=request.mounts,
                home=self._job_settings.home,
                hub_prefix=request.hub.prefix if request.hub else "",
                partition=decision.group,
                **asdict(request.slurm),
                time_limit=decision.minutes,
                begin=begin,
                preset=preset,
                created=now,
                submitted=now,
                attempts=0,
                token_hash=hash_secret(token),
            )
            for identifier, name, token in zip(ids, names, tokens, strict=True)
        ]

    # Submission

    def _submit_all(self, launch: _Launch) -> list[Session]:
        """Submit them in turn; raises a refusal, and Unavailable."""
        sessions: list[Session] = []
        try:
            for session, token in zip(launch.sessions, launch.tokens, strict=True):
                launch.latest = session.id
                try:
                    sessions.append(self._submit_first(session, launch.image, token, launch.env))
                except OutcomeUnknown as error:
                    log.warning("session %s: submission unclear: %s", session.id, error)
                    sessions.append(session)
                    launch.unclear.add(session.id)
        finally:
            self._waiting.remove([session.id for session in launch.sessions])
        return sessions

    def _submit_first(
        self, session: Session, image: Image, token: str, env: Mapping[str, str]
    ) -> Session:
        """Submit a session of a new launch, unless it was ended or the worker has begun to."""
        claimed = self._store.apply(session.id, claim_first(self._clock()))
        self._waiting.remove([session.id])
        if claimed is None:
            return self._store.get(session.id) or session
        return self._submit(claimed, image, token, env)

    def _submit(
        self, session: Session, image: Image, token: str, env: Mapping[str, str]
    ) -> Session:
        """Submit a session that this process has claimed."""
        spec = self._spec(session, token, env)
        script = self._script(session, image)
        job_id = self._submit_job(session, spec, script)
        self._measures.launch("submit", (self._clock() - session.created).total_seconds())
        changed = self._store.apply(session.id, submitted(job_id)) or self._store.change(
            session.id, LIVE, job_id=job_id
        )
        if changed is not None and changed.state is State.ENDING:
            self._teardown.cancel([changed])  # it was stopped while Slurm was accepting it
        return changed or session

    def _submit_job(self, session: Session, spec: str, script: str) -> str:
        """Submit the job and return its id; raises InvalidRequest, Unavailable, OutcomeUnknown."""
        try:
            return self._scheduler.submit(session.owner, session.id, spec, script)
        except GresUnknown as error:
            if self._cluster.has_gpu_for(session):
                raise Unavailable(GPUS_UNKNOWN_YET) from error
            raise
        except NodesUnknown as error:
            if self._cluster.has_node_for(session):
                raise Unavailable(NODES_UNKNOWN_YET) from error
            raise

    def _script(self, session: Session, image: Image) -> str:
        job = build_job(session, image, self._job_settings, self._clock())
        return render_script(job, self._job_settings.template)

    def _spec(
        self, session: Session, token: str, env: Mapping[str, str], *, is_requeued: bool = False
    ) -> str:
        # A requeued session keeps an image that was retired since its launch, as with named ones.
        refused = self._refused_files(session.owner) if session.image else ()
        return runner_spec(
            session,
            token,
            self._catalog().startable(session.environment, session.version),
            self._job_settings,
            env,
            callback_ca=self._certificates.server_ca(),
            client_ca=self._certificates.client_ca(),
            adoption={"proof": PROOF_INSIDE, "about": claims_of(session)},
            registry=self._registry_login(session.owner, session.image),
            refused=[file for file in refused if not (file.retired and is_requeued)],
        )

    def _refused_files(self, owner: str) -> tuple[RefusedFile, ...]:
        """The site's image files that a session's owner may not start as own images."""
        person = Person(owner, self._may_administer(owner), login="")
        return self._administration.refused_files(person, self._catalog())

    def prepare_requeued(self, session: Session) -> None:
        """Create an empty folder and a new secret for a requeued session.

        Slurm still has its job and script, so nothing is submitted. The secret is stored last:
        after a crash before that, everything is repeated.
        """
        token = secrets.token_urlsafe(32)
        spec = self._spec(session, token, self._store.env(session.id), is_requeued=True)
        self._scheduler.prepare(session.owner, session.id, spec)
        self._store.change(session.id, {State.PENDING}, token_hash=hash_secret(token))

    def resubmit(self, session: Session) -> None:
        """Submit a session whose job is known not to exist, with a new secret."""
        image = self._catalog().of_session(session)
        token = secrets.token_urlsafe(32)
        claimed = self._store.apply(
            session.id, claim_again(session, self._clock(), hash_secret(token))
        )
        if image is None or claimed is None:
            return
        self._files.remove_session(session.owner, session.id)
        self._submit(claimed, image, token, self._store.env(session.id))

    # All or none

    def end_batch(
        self,
        batch: str,
        text: str = "",
        is_unsubmitted: Callable[[Session], bool] = lambda _: False,
    ) -> list[Session]:
        """End the live sessions of a launch that did not succeed as a whole; returns them.

        Those that are not submitted have failed to start, for the reason `text`. One transaction
        marks all of them, so that no crash leaves some; the reconciler repeats commands that Slurm
        does not answer.
        """
        now = self._clock()

        def end_of(session: Session) -> Transition:
            if session.state is State.SUBMITTING and is_unsubmitted(session):
                return fail_to_start(text, now)
            return stop(UNDONE, now)

        ended = self._store.apply_to_batch(batch, end_of)
        for session in ended:
            self._teardown.close_apps(session.id)
        return ended

    def _undo(self, launch: _Launch, error: PortalError) -> None:
        """Delete all sessions of a refused launch, except for those that Slurm may still have."""
        gone = []
        for session in self.end_batch(launch.batch, error.text, launch.is_unsubmitted):
            if session.id not in launch.unclear and self._is_gone(session):
                gone.append(session.id)
        self._store.forget(launch.batch, gone)

    def _is_gone(self, session: Session) -> bool:
        if session.job_id is None:
            return True
        try:
            self._scheduler.cancel(session.owner, session.job_id)
            # A job that never ran does not delete its folder, which contains secrets.
            self._files.remove_session(session.owner, session.id)
        except Unavailable as error:
            log.warning("session %s: refused launch not undone yet: %s", session.id, error)
            return False
        return True
