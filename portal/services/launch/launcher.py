"""Launches sessions: stored first, then submitted; several of one launch all or none."""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import NamedTuple

from portal.core.apps.catalog import Catalog, Image
from portal.core.auth.person import Person, hash_secret
from portal.core.interfaces.monitoring import Measures
from portal.core.interfaces.systems import Certificates, Clock, Scheduler, UserFiles
from portal.core.job.adoption import PROOF_INSIDE, claims_of
from portal.core.job.batch_script import render_script
from portal.core.job.description import JobSettings, build_job
from portal.core.job.runner_protocol import runner_spec
from portal.core.launch.names import names_for
from portal.core.launch.request import LaunchRequest
from portal.core.launch.site_files import RefusedFile
from portal.core.notices.maintenance import UnderMaintenance
from portal.core.session.relaunch import describe_launch
from portal.core.session.session import LIVE, Session, State
from portal.core.session.transitions import stop, submitted
from portal.errors import HomeUnusable, InvalidRequest, OutcomeUnknown, Unavailable
from portal.node.common.fgpu import to_number
from portal.services.admin.administration import Administration
from portal.services.cluster import Cluster, refuse_while_down
from portal.services.job_control import JobControl
from portal.services.launch.checks import LaunchChecks, LaunchView, Plan
from portal.services.launch.submission import submit_job
from portal.services.storage import GrantMounts
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=12)
"""How long one request keeps submitting; the reconciler submits the rest. With the longest
submission (22 s) it ends before the reconciler searches for lost ones (60 s)."""
UNDONE = "Slipway, since Slurm did not accept all sessions of this launch"


class Draft(NamedTuple):
    """What a launch would submit."""

    session: Session
    script: str


class Launcher:
    """Creates sessions and submits their jobs."""

    def __init__(
        self,
        *,
        store: SessionStore,
        cluster: Cluster,
        scheduler: Scheduler,
        job_control: JobControl,
        files: UserFiles,
        certificates: Certificates,
        catalog: Callable[[], Catalog],
        clock: Clock,
        job_settings: JobSettings,
        administration: Administration,
        checks: LaunchChecks,
        snapshot: Callable[[], AbstractContextManager[None]],
        close_apps: Callable[[str], None],
        registry_login: Callable[[str, str], Mapping[str, str] | None],
        refused_files: Callable[[str], Sequence[RefusedFile]],
        grant: GrantMounts,
        measures: Measures,
        launch_begin: Callable[[Person], datetime | None],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._scheduler = scheduler
        self._job_control = job_control
        self._files = files
        self._certificates = certificates
        self._catalog = catalog
        self._clock = clock
        self._job_settings = job_settings
        self._administration = administration
        self._checks = checks
        self._snapshot = snapshot
        self._close_apps = close_apps
        self._registry_login = registry_login
        self._refused_files = refused_files
        self._grant = grant
        self._measures = measures
        self._launch_begin = launch_begin

    def parse(self, data: object) -> LaunchRequest:
        """Validate untrusted input, expanding a template; raises InvalidRequest."""
        return self._checks.parse(data)

    def prepare(self, person: Person, data: object, key: str | None = None) -> Plan:
        """Validate untrusted input and decide; InvalidRequest names all wrong fields.

        `key`: by which the client's repetitions are recognised, if it is about to be launched.
        """
        view, is_new = self._look(person, key)
        return self._checks.prepare(view, data, is_new=is_new)._replace(key=key)

    def plan(self, person: Person, request: LaunchRequest, key: str | None = None) -> Plan:
        """The same for a request that is validated already."""
        view, is_new = self._look(person, key)
        return self._checks.plan(view, request, is_new=is_new)._replace(key=key)

    def _look(self, person: Person, key: str | None) -> tuple[LaunchView, bool]:
        """All that decides about a launch, and whether the key is new; one transaction."""
        with self._snapshot():
            is_new = key is None or not self._store.has_key(person.name, key)
            return self._checks.look(person), is_new

    def launch(self, plan: Plan, preset: str = "") -> list[Session]:
        """Store the sessions, then submit their jobs; idempotent for the same key.

        `preset` names the preset that the request comes from, if any.

        Raises InvalidRequest, HomeUnusable (nothing is stored), Conflict (the key was used for a
        different launch), Unavailable (nothing is stored; also during maintenance without a known
        end). If Slurm's answer is lost, the session stays and the reconciler finds its job: a
        launch never creates two jobs and never loses one.
        """
        person, request = plan.view.person, plan.request
        # A repeated request is answered with its sessions, whatever has begun since.
        begin = self._launch_begin(person) if plan.is_new else None
        refuse_while_down(plan.view.cluster.status, self._clock())
        # The user's own folders and others' are looked for; what is shared read-only stays so.
        granted = request.model_copy(update={"mounts": self._grant(person, request.mounts)})
        tokens = [secrets.token_urlsafe(32) for _ in range(request.count)]
        created = self._sessions(plan._replace(request=granted), tokens, begin, preset)
        # Hashed, since the request may contain passwords.
        fingerprint = hash_secret(request.model_dump_json())
        hub_env = request.hub.env if request.hub else {}
        stored, new = self._store.add(created, plan.key, fingerprint, request.env, hub_env)
        if not new:
            return stored
        self._note(person, "session.launch", stored)
        try:
            pairs = list(zip(stored, tokens, strict=True))
            return self._submit_all(pairs, plan.decision.image, request.env)
        except (InvalidRequest, HomeUnusable, Unavailable) as error:
            self._note(person, "session.refused", stored, error.text)
            raise

    def _note(self, person: Person, action: str, created: Sequence[Session], why: str = "") -> None:
        lines = [(session.id, why or describe_launch(session)) for session in created]
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
                token_hash=hash_secret(token),
            )
            for identifier, name, token in zip(ids, names, tokens, strict=True)
        ]

    # Submission

    def _submit_all(
        self, created: list[tuple[Session, str]], image: Image, env: Mapping[str, str]
    ) -> list[Session]:
        begun = self._clock()
        known: list[Session] = []
        unclear: set[str] = set()
        for session, token in created:
            if self._clock() - begun > PATIENCE:
                known.append(session)
                continue
            try:
                known.append(self._submit(session, image, token, env))
            except OutcomeUnknown as error:
                log.warning("session %s: submission unclear: %s", session.id, error)
                known.append(session)
                unclear.add(session.id)
            except (InvalidRequest, HomeUnusable, Unavailable):
                self._undo(created[0][0].id, unclear)
                raise
        return known

    def _submit(
        self, session: Session, image: Image, token: str, env: Mapping[str, str]
    ) -> Session:
        spec = self._spec(session, token, env)
        script = self._script(session, image)
        job_id = submit_job(self._scheduler, self._cluster, session, spec, script)
        self._measures.launch("submit", (self._clock() - session.submitted).total_seconds())
        changed = self._store.apply(session.id, submitted(job_id)) or self._store.change(
            session.id, LIVE, job_id=job_id
        )
        if changed is not None and changed.state is State.ENDING:
            self._job_control.cancel([changed])  # it was stopped while Slurm was accepting it
        return changed or session

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
        claimed = self._store.change(
            session.id,
            {State.SUBMITTING},
            token_hash=hash_secret(token),
            submitted=self._clock(),
            attempts=session.attempts + 1,
        )
        if image is None or claimed is None:
            return
        self._files.remove_session(session.owner, session.id)
        self._submit(claimed, image, token, self._store.env(session.id))

    # All or none

    def end_batch(self, batch: str) -> list[Session]:
        """End the live sessions of a launch that did not succeed as a whole.

        One transaction marks all of them, so that no crash leaves some; the reconciler repeats
        commands that Slurm does not answer.
        """
        ended = self._store.apply_to_batch(batch, stop(UNDONE, self._clock()))
        for session in ended:
            self._close_apps(session.id)
        return ended

    def _undo(self, batch: str, unclear: Iterable[str]) -> None:
        """Delete all sessions of a refused launch, except for those that Slurm may still have."""
        gone = []
        for session in self.end_batch(batch):
            if session.id not in unclear and self._is_gone(session):
                gone.append(session.id)
        self._store.forget(batch, gone)

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
