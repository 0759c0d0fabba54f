"""The story of a session: launch, mark_ready, stop. What time does to it is in reconcile.py."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.access import Access
from portal.core.access import AppState, Person, gateway_name, hash_secret
from portal.core.app import Catalog, Image
from portal.core.job import JobReport
from portal.core.launch import LaunchRequest
from portal.core.names import readable_name
from portal.core.offer import groups_of
from portal.core.policy import decide, group_for
from portal.core.ports import (
    Certificates,
    Clock,
    Resolver,
    Scheduler,
    SessionStore,
    StatusStore,
    UserFiles,
)
from portal.core.script import render
from portal.core.session import LIVE, NOT_WAITING, OVER, WAITING, Session, State
from portal.core.submission import Rules, build_job, runner_spec
from portal.errors import Gone, InvalidRequest, NotFound, OutcomeUnknown, Unauthorized, Unavailable

log = logging.getLogger(__name__)

DOWN_AFTER = timedelta(seconds=5)
"""How long Slurm may be silent before a launch is refused without asking it."""


@dataclass(frozen=True)
class ReadyMessage:
    """What a runner says when its gateway has a port; `request` is a PEM signing request."""

    job_id: str
    node: str
    port: int
    request: str


@dataclass(frozen=True)
class ReadyAnswer:
    """What the runner gets back: its certificate and the apps to start at once."""

    certificate: str
    start: list[dict[str, object]]


@dataclass(frozen=True)
class Usage:
    """A heartbeat: seconds of CPU so far, bytes in use, processes killed for memory."""

    cpu_seconds: float
    memory_bytes: int
    oom_kills: int
    apps: dict[str, AppState]


class Sessions:
    """Launches, follows and ends sessions; the only writer of their rows besides reconcile."""

    def __init__(
        self,
        *,
        store: SessionStore,
        status: StatusStore,
        scheduler: Scheduler,
        files: UserFiles,
        certificates: Certificates,
        access: Access,
        resolve: Resolver,
        catalog: Callable[[], Catalog],
        clock: Clock,
        rules: Rules,
    ) -> None:
        self.store = store
        self.status = status
        self.scheduler = scheduler
        self.files = files
        self.access = access
        self.catalog = catalog
        self.clock = clock
        self._certificates = certificates
        self._resolve = resolve
        self._rules = rules

    # Launch

    def launch(self, person: Person, request: LaunchRequest, key: str | None = None) -> Session:
        """Store a session, then submit its job; the same key again gives the same session.

        Raises InvalidRequest (nothing is stored), Conflict (the key was used for something else),
        Unavailable (nothing is stored). When Slurm's answer is lost, the session stays and
        reconcile finds out: a launch never makes two jobs and never loses one.
        """
        partitions = groups_of(self.status, person.name)
        image = decide(request, self.catalog(), partitions)
        self._refuse_while_down()
        group = group_for(request.resource_group, partitions or [])
        token = secrets.token_urlsafe(32)
        now = self.clock()
        session = Session(
            id=uuid.uuid4().hex,
            name=request.name or readable_name(secrets.randbits(32)),
            owner=person.name,
            environment=image.environment,
            version=image.version,
            cpus=request.resources.cpus,
            memory_mb=request.resources.memory,
            partition=group.name if group else request.resource_group,
            time_limit=request.time_limit,
            state=State.SUBMITTING,
            created=now,
            submitted=now,
            token_hash=hash_secret(token),
        )
        stored, new = self.store.add(session, key, request.model_dump_json())
        if not new:
            return stored
        try:
            return self._submit(session, image, token)
        except OutcomeUnknown as error:
            log.warning("session %s: submission unclear: %s", session.id, error)
            return session
        except (InvalidRequest, Unavailable):
            self.store.forget(session.id)
            raise

    def _refuse_while_down(self) -> None:
        status = self.status.slurm_status()
        if status.failing_since and self.clock() - status.failing_since > DOWN_AFTER:
            raise Unavailable(
                "Slurm has not answered since "
                f"{status.failing_since:%H:%M:%S} UTC, so nothing can be launched right now. "
                "Running sessions are not affected. Try again in a few minutes."
            )

    def _submit(self, session: Session, image: Image, token: str) -> Session:
        spec = runner_spec(
            session,
            token,
            self.catalog().apps_of(image.environment, image.version),
            self._rules,
            callback_ca=self._certificates.server_ca(),
            client_ca=self._certificates.client_ca(),
        )
        script = render(build_job(session, image, self._rules), self._rules.template)
        job_id = self.scheduler.submit(session.owner, session.id, spec, script)
        changed = self.store.change(
            session.id, {State.SUBMITTING}, state=State.PENDING, job_id=job_id
        ) or self.store.change(session.id, LIVE, job_id=job_id)
        if changed is not None and changed.state is State.ENDING:
            self._cancel(changed)  # it was stopped while Slurm was taking it
        return changed or session

    def resubmit(self, session: Session) -> None:
        """Submit a session whose job is known not to exist; a new secret replaces the old."""
        image = self.catalog().image(session.environment, session.version)
        token = secrets.token_urlsafe(32)
        claimed = self.store.change(
            session.id,
            {State.SUBMITTING},
            token_hash=hash_secret(token),
            submitted=self.clock(),
            attempts=session.attempts + 1,
        )
        if image is None or claimed is None:
            return
        self.files.remove_session(session.owner, session.id)
        self._submit(claimed, image, token)

    # The runner's calls

    def authenticate(self, session_id: str, token: str) -> Session:
        """The live session whose runner holds this token; raises Unauthorized or Gone."""
        session = self.store.get(session_id)
        if session is None or not hmac.compare_digest(session.token_hash, hash_secret(token)):
            raise Unauthorized("This token does not belong to the session.")
        if session.state in OVER or session.state is State.ENDING:
            raise Gone("The session is over.")
        return session

    def mark_ready(self, session: Session, message: ReadyMessage) -> ReadyAnswer:
        """Certify the gateway of an authenticated session's job and make the session RUNNING.

        The runner's word is not enough for where it is: Slurm must say that this very job of
        this user holds the node. Saying it again (a lost answer) is fine.
        """
        report = self._job_of(session, message)
        address = self._address(report.nodes[0])
        certificate = self._certificates.sign_gateway(session.id, message.request)
        changed = self.store.change(
            session.id,
            WAITING | {State.RUNNING},
            state=State.RUNNING,
            job_id=report.job_id,
            node=report.nodes[0],
            address=address,
            port=message.port,
            **NOT_WAITING,
            started=report.start or self.clock(),
            ready=session.ready or self.clock(),
        )
        if changed is None:
            raise Gone("The session is over.")
        return ReadyAnswer(certificate, self.access.wanted(changed))

    def _job_of(self, session: Session, message: ReadyMessage) -> JobReport:
        for report in self.scheduler.find(session.id, session.owner):
            if report.job_id == message.job_id and message.node in report.nodes:
                return report
        raise Unauthorized("Slurm knows no such job on that node.")

    def _address(self, node: str) -> str:
        address = self._resolve(node)
        parsed = ipaddress.ip_address(address)
        if parsed.is_loopback or parsed.is_link_local or parsed.is_multicast:
            raise Unauthorized(f"{node} has no address that could be a compute node's.")
        return address

    def record_usage(self, session: Session, usage: Usage) -> None:
        """Take in a heartbeat, and what it says of apps whose report was lost."""
        now = self.clock()
        self.store.change(
            session.id,
            LIVE,
            usage_at=now,
            cpu_seconds=usage.cpu_seconds,
            cpu_percent=_cpu_percent(session, usage.cpu_seconds, now),
            memory_used=usage.memory_bytes,
            oom_kills=usage.oom_kills,
        )
        for app, state in usage.apps.items():
            self.access.note_app(session, app, state)

    # Stop

    def visible(self, person: Person, session_id: str) -> Session:
        """The session, if this person may see it; else NotFound, whether or not it exists."""
        session = self.store.get(session_id)
        if session is None or not person.may_see(session):
            raise NotFound("There is no such session.")
        return session

    def stop(self, person: Person, session_id: str) -> Session:
        """End a session in any state; one that is over stays as it is.

        When Slurm does not answer, the wish is stored and reconcile carries it out.
        """
        session = self.visible(person, session_id)
        changed = self.store.change(
            session.id,
            WAITING | {State.RUNNING},
            state=State.ENDING,
            stop_requested=self.clock(),
            stopped_by=person.name,
        )
        if changed is None:
            return self.store.get(session.id) or session
        self._cancel(changed)
        self.access.close_session(session.id)
        return changed

    def _cancel(self, session: Session) -> None:
        if session.job_id is None:
            return
        try:
            self.scheduler.cancel(session.owner, session.job_id)
        except Unavailable as error:
            log.warning("session %s: not cancelled yet: %s", session.id, error)

    def cancel_again(self, session: Session) -> None:
        """Repeat the wish of stop(), for reconcile."""
        self._cancel(session)

    def read_log(self, person: Person, session_id: str, offset: int, limit: int = 1 << 20) -> bytes:
        """Part of a session's log, from a byte offset on."""
        session = self.visible(person, session_id)
        return self.files.read_log(session.owner, session.id, offset, limit)

    def control_name(self, session: Session) -> str:
        """The name under which a session's runner takes orders."""
        return gateway_name("control", session.id)


def _cpu_percent(session: Session, cpu_seconds: float, now: datetime) -> float | None:
    """Percent of one core used since the last heartbeat."""
    if session.usage_at is None or session.cpu_seconds is None:
        return None
    span = (now - session.usage_at).total_seconds()
    used = cpu_seconds - session.cpu_seconds
    return round(100 * used / span, 1) if span > 0 and used >= 0 else None
