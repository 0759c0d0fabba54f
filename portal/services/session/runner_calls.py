"""Handles runners' calls from inside their jobs: ready, and a heartbeat every few seconds."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from portal.core.auth.person import hash_secret
from portal.core.cluster.job_reports import JobReport
from portal.core.interfaces.monitoring import Measures
from portal.core.interfaces.systems import Certificates, Clock, Resolver, Scheduler
from portal.core.session.countdown import countdown, retention_text
from portal.core.session.idle import is_computing, should_record_use
from portal.core.session.session import LIVE, OVER, WAITING, Facts, Session, State
from portal.core.session.status import is_node_silent
from portal.core.session.transitions import ready
from portal.core.session_job.next_report import WATCHED, seconds_to_next
from portal.core.session_job.runner_protocol import (
    Heartbeat,
    HeartbeatAnswer,
    ProgressMessage,
    ReadyMessage,
    RenewalAnswer,
    RenewalMessage,
    StartRequest,
    fingerprint,
    is_same_figure,
)
from portal.core.site_rules import SiteRules
from portal.errors import Conflict, Gone, SessionUnknown, Unauthorized
from portal.services.apps.reports import AppReports
from portal.services.apps.starter import AppStarter
from portal.store.samples import SampleStore
from portal.store.sessions import SessionStore

LONGEST_OUTAGE = 24 * 3600.0
"""Seconds; upper bound for the age of a memory kill that a runner reports."""
MAX_THREADS_PER_CORE = 8
"""Upper bound for all processors."""


@dataclass(frozen=True)
class ReadyAnswer:
    """The response to the runner: its certificate and the apps to start immediately."""

    certificate: str
    start: list[StartRequest]


class RunnerCalls:
    """Authenticates runners and applies their reports."""

    def __init__(
        self,
        *,
        store: SessionStore,
        samples: SampleStore,
        scheduler: Scheduler,
        certificates: Certificates,
        resolve: Resolver,
        app_reports: AppReports,
        app_starter: AppStarter,
        site_rules: Callable[[], SiteRules],
        is_watched: Callable[[str, datetime], bool],
        snapshot: Callable[[], AbstractContextManager[None]],
        count_change: Callable[[str], None],
        usual_seconds: float,
        clock: Clock,
        measures: Measures,
    ) -> None:
        self._store = store
        self._samples = samples
        self._scheduler = scheduler
        self._certificates = certificates
        self._resolve = resolve
        self._app_reports = app_reports
        self._app_starter = app_starter
        self._site_rules = site_rules
        self._is_watched = is_watched
        self._snapshot = snapshot
        self._count_change = count_change
        self._usual_seconds = usual_seconds
        self._clock = clock
        self._measures = measures

    def authenticate(self, session_id: str, token: str) -> Session:
        """The live session whose runner holds this token.

        Raises Unauthorized, Gone, and SessionUnknown: an unknown session may have been lost, and
        is not reported as ended.
        """
        session = self._store.get(session_id)
        if session is None:
            raise SessionUnknown
        if not hmac.compare_digest(session.token_hash, hash_secret(token)):
            raise Unauthorized("This token does not belong to the session.")
        if session.state in OVER or session.state is State.ENDING:
            raise Gone("The session is over.")
        return session

    def mark_ready(self, session: Session, message: ReadyMessage) -> ReadyAnswer:
        """Certify the gateway of an authenticated session's job and make the session RUNNING.

        The runner's claim about its node is not trusted: Slurm must confirm that this job of this
        user holds the node. Idempotent, for a runner that did not receive the response.
        """
        proof = Facts() if _is_proven(session, message) else self._prove(session, message)
        certificate = self._certificates.sign_gateway(session.id, message.csr)
        apps = self._app_reports.note_image(session, message.apps)
        changed = self._store.apply(
            session.id, ready(session, proof, message.port, apps, self._clock())
        )
        if changed is None:
            raise Gone("The session is over.")
        if session.ready is None:
            self._measure(changed)
        return ReadyAnswer(certificate, self._app_starter.pending_starts(changed))

    def _measure(self, session: Session) -> None:
        """Measure the phases of a start; not after a requeue, when no user waits for it."""
        if session.started is None or session.ready is None or session.restarts:
            return
        for phase, started, ended in (
            ("queue", session.submitted, session.started),
            ("start", session.started, session.ready),
            ("total", session.created, session.ready),
        ):
            self._measures.launch(phase, (ended - started).total_seconds())

    def renew(self, session: Session, message: RenewalMessage) -> RenewalAnswer:
        """The current authorities, and a new certificate for a session's gateway."""
        if session.ready is None:
            raise Conflict("The session's gateway has not been certified yet.")
        return RenewalAnswer(
            certificate=self._certificates.sign_gateway(session.id, message.csr),
            callback_ca=self._certificates.server_ca(),
            client_ca=self._certificates.client_ca(),
        )

    def note_progress(self, session: Session, message: ProgressMessage) -> None:
        """Store the progress of an authenticated session's job before its container starts."""
        facts = Facts(progress=message.shown, progress_at=self._clock())
        self._store.change(session.id, WAITING, **facts)

    def _prove(self, session: Session, message: ReadyMessage) -> Facts:
        report = self._job_of(session, message)
        return Facts(
            job_id=report.job_id,
            node=report.nodes[0],
            address=self._address(report.nodes[0]),
            started=report.start or self._clock(),
            deadline=report.deadline,
        )

    def _job_of(self, session: Session, message: ReadyMessage) -> JobReport:
        for report in self._scheduler.find(session.id, session.owner):
            if report.job_id == message.job_id and message.node in report.nodes:
                return report
        raise Unauthorized("Slurm knows no such job on that node.")

    def _address(self, node: str) -> str:
        address = self._resolve(node)
        parsed = ipaddress.ip_address(address)
        if parsed.is_loopback or parsed.is_link_local or parsed.is_multicast:
            raise Unauthorized(f"{node} has no address that could be a compute node's.")
        return address

    def record_usage(self, session: Session, usage: Heartbeat) -> HeartbeatAnswer:
        """Store a heartbeat, and its states of apps whose own report was lost.

        Returns the values shown in the session's terminals.
        """
        now = self._clock()
        with self._snapshot():
            rules, states = self._site_rules(), self._app_reports.states(session.id)
            watched = self._is_watched(session.owner, now - WATCHED)
        percent = _cpu_percent(session, usage.cpu_seconds, now)
        facts = _changes(session, percent, usage, now)
        long_enough = _seconds_since(session, now) >= self._usual_seconds / 2
        if _is_use(session, percent if long_enough else None, usage, rules, now):
            facts["last_used"] = now
        self._samples.record(session.id, LIVE, facts, usage.reading(now))
        if is_node_silent(session, now):  # `usage_at` alone is no change, and pages show silence
            self._count_change(session.owner)
        for app, state in usage.apps.items():
            if app in states and state is not states[app]:
                self._app_reports.note_app(session, app, state)
        end = countdown(session, rules, now)
        left = None if end.ends is None else max(int((end.ends - now).total_seconds()), 0)
        pause = seconds_to_next(session, end, left, states.values(), watched)
        return HeartbeatAnswer(
            name=session.name,
            kept=retention_text(session),
            seconds_left=left,
            unused=end.unused,
            ready=session.ready is not None,
            next=max(pause or 0.0, self._usual_seconds),
            authorities=fingerprint(self._certificates.server_ca(), self._certificates.client_ca()),
        )


def _changes(session: Session, percent: float | None, usage: Heartbeat, now: datetime) -> Facts:
    """What a heartbeat changes; `usage_at` and `cpu_seconds` alone are no change to pages."""
    facts = Facts(cpu_percent=percent, **usage.meters())
    facts["memory_peak"] = max(session.memory_peak or 0, usage.most_memory)
    if usage.oom_kills > session.oom_kills:
        # A new kill has a new notice, even if that of an earlier one was dismissed.
        age = timedelta(seconds=min(usage.oom_age, LONGEST_OUTAGE))
        facts["oom_at"] = now - age
        facts["oom_program"], facts["oom_seen"] = usage.oom_program, None
    changed = {
        name: value
        for name, value in facts.items()
        if not is_same_figure(name, getattr(session, name), value)
    }
    return cast(Facts, {"usage_at": now, **changed})


def _is_use(
    session: Session, percent: float | None, usage: Heartbeat, rules: SiteRules, now: datetime
) -> bool:
    """Whether to record a heartbeat as use of the session."""
    cpu = _highest(percent, usage.peak_cpu_percent)
    gpu = _highest(usage.gpu_percent, usage.peak_gpu_percent)
    used = is_computing(session, cpu, usage.busy, rules, now, gpu)
    return used and should_record_use(session, rules, now)


def _seconds_since(session: Session, now: datetime) -> float:
    """Since its last report; 0 without one. Little use in a short time may be a high percentage."""
    return (now - session.usage_at).total_seconds() if session.usage_at else 0.0


def _highest(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _is_proven(session: Session, message: ReadyMessage) -> bool:
    """Whether Slurm has already confirmed that this job holds this node."""
    confirmed = session.job_id, session.node
    same = session.ready is not None and confirmed == (message.job_id, message.node)
    return same and session.address is not None


def _cpu_percent(session: Session, cpu_seconds: float, now: datetime) -> float | None:
    """Percent of one core used since the last heartbeat."""
    if session.usage_at is None or session.cpu_seconds is None:
        return None
    span = (now - session.usage_at).total_seconds()
    used = cpu_seconds - session.cpu_seconds
    if span <= 0 or used < 0:
        return None
    # Two reports may be close together, and are not trusted. A job can use at most whole cores
    # with all of their threads, to which Slurm may round up.
    return min(round(100 * used / span, 1), 100.0 * MAX_THREADS_PER_CORE * session.cpus)
