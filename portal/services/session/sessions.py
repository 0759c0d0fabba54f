"""The story of a session: launch, mark_ready, stop. What time does to it is in reconcile.py."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.core.apps.catalog import Catalog
from portal.core.auth.person import Person, hash_secret
from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.jobs import Estimate, JobReport
from portal.core.interfaces.stores import SessionStore, StatusStore
from portal.core.interfaces.systems import Certificates, Clock, Resolver, Scheduler, UserFiles
from portal.core.job.description import JobSettings
from portal.core.job.runner_protocol import Heartbeat, ReadyMessage
from portal.core.launch.request import LaunchRequest, parse_launch
from portal.core.launch.templates import fill
from portal.core.session.idle import is_computing, should_record_use
from portal.core.session.query import ListQuery, Page, count_tabs
from portal.core.session.relaunch import session_to_request_body
from portal.core.session.session import (
    LIVE,
    NEVER_CALLED,
    NOT_WAITING,
    OVER,
    WAITING,
    Changes,
    Session,
    State,
)
from portal.errors import Conflict, Gone, NotFound, Unauthorized
from portal.services.admin.administration import Administration
from portal.services.apps.apps import Apps
from portal.services.launch.estimates import Estimates
from portal.services.launch.launcher import Launcher
from portal.services.owner_queue import RunForOwner, run_now
from portal.services.session.lifecycle import Lifecycle

MOST_OF_A_LOG = 1 << 20
"""Bytes of a log that are read at once."""
MOST_THREADS = 8
"""Of one core, on any processor that there is."""


@dataclass(frozen=True)
class ReadyAnswer:
    """What the runner gets back: its certificate and the apps to start at once."""

    certificate: str
    start: list[dict[str, object]]


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
        access: Apps,
        resolve: Resolver,
        catalog: Callable[[], Catalog],
        clock: Clock,
        rules: JobSettings,
        administration: Administration,
        gpus: Gpus,
        extend_minutes: int,
    ) -> None:
        self.store = store
        self.status = status
        self.scheduler = scheduler
        self.files = files
        self.access = access
        self.catalog = catalog
        self.clock = clock
        self.gpus = gpus
        self.later: RunForOwner = run_now
        """How what waits for owners is done; the worker has a pool for it."""
        self._certificates = certificates
        self._resolve = resolve
        self._administration = administration
        self._launches = Launcher(
            store=store,
            status=status,
            scheduler=scheduler,
            files=files,
            certificates=certificates,
            catalog=catalog,
            clock=clock,
            rules=rules,
            administration=administration,
            gpus=gpus,
            shut=access.close_session,
        )
        self._estimates = Estimates(scheduler, status, clock, self._launches.draft)
        self._tending = Lifecycle(
            store=store,
            status=status,
            scheduler=scheduler,
            administration=administration,
            clock=clock,
            extend_minutes=extend_minutes,
        )

    # Launch

    def parse(self, data: object) -> LaunchRequest:
        """Check untrusted input, a template's name in it included; raises InvalidRequest."""
        return parse_launch(fill(data, self._administration.templates()))

    def estimate(self, person: Person, request: LaunchRequest) -> Estimate | None:
        """Slurm's guess when such a session would start (see Estimates)."""
        return self._estimates.estimate(person, request)

    def launch_all(
        self, person: Person, request: LaunchRequest, key: str | None = None
    ) -> list[Session]:
        """Launch as many sessions as the request says: all of them, or none (see Launches)."""
        return self._launches.launch(person, request, key)

    def launch(self, person: Person, request: LaunchRequest, key: str | None = None) -> Session:
        """Launch, for those who ask for a single session."""
        return self.launch_all(person, request, key)[0]

    def draft(self, person: Person, request: LaunchRequest) -> Session:
        """The first session that a launch would make; nothing is stored. Raises InvalidRequest."""
        return self._launches.draft(person, request)[0]

    def again(self, person: Person, session_id: str) -> dict[str, Any]:
        """A launch's body that makes a session like one of one's own; raises NotFound.

        The owner's alone: values of environment variables are in it.
        """
        session = self.store.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session of yours.")
        env = self.store.env(session.id)
        if session.env_names and not env:
            names = ", ".join(session.env_names)
            raise Conflict(
                f"The values of this session's variables ({names}) are forgotten some time after "
                "its end. Start a new session and enter them again."
            )
        return session_to_request_body(session, env)

    def resubmit(self, session: Session) -> None:
        """Submit a session whose job is known not to exist."""
        self._launches.resubmit(session)

    def prepare_again(self, session: Session) -> None:
        """Make ready what the job of a session needs that Slurm has put back into the queue."""
        self._launches.prepare_again(session)

    def end_batch(self, session: Session) -> None:
        """End all sessions that were launched together with this one, and this one, too."""
        for other in self._launches.end_batch(session.batch or session.id):
            self._launches.cancel(other)

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
        place = {} if _proven(session, message) else self._prove(session, message)
        certificate = self._certificates.sign_gateway(session.id, message.csr)
        changed = self.store.change(
            session.id,
            WAITING | {State.RUNNING},
            state=State.RUNNING,
            **place,
            port=message.port,
            **NOT_WAITING,
            ready=session.ready or self.clock(),
            last_used=self.clock(),
            apps=self.access.note_image(session, message.apps),
        )
        if changed is None:
            raise Gone("The session is over.")
        return ReadyAnswer(certificate, self.access.starts.pending_starts(changed))

    def _prove(self, session: Session, message: ReadyMessage) -> Changes:
        report = self._job_of(session, message)
        return {
            "job_id": report.job_id,
            "node": report.nodes[0],
            "address": self._address(report.nodes[0]),
            "started": report.start or self.clock(),
            "deadline": report.deadline,
        }

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

    def record_usage(self, session: Session, usage: Heartbeat) -> None:
        """Record a heartbeat, and the states in it of apps whose report was lost."""
        now = self.clock()
        percent = _cpu_percent(session, usage.cpu_seconds, now)
        self.store.change(
            session.id,
            LIVE,
            usage_at=now,
            cpu_percent=percent,
            **usage.meters(),
            **self._use(session, percent, usage, now),
        )
        for app, state in usage.apps.items():
            self.access.note_app(session, app, state)

    def _use(
        self, session: Session, percent: float | None, usage: Heartbeat, now: datetime
    ) -> dict[str, datetime]:
        rules = self._administration.site_rules()
        used = is_computing(session, percent, usage.busy, rules, now, usage.gpu_percent)
        return {"last_used": now} if used and should_record_use(session, rules, now) else {}

    # The list

    def query(self, person: Person, query: ListQuery) -> Page:
        """One page of the sessions that this person may see."""
        if not person.admin and query.owner not in (None, person.name):
            return Page()  # the same answer whether or not such a person has sessions
        return self.store.query(query.model_copy(update={"owner": _whose(person, query)}))

    def counts(self, person: Person, query: ListQuery) -> dict[str, int]:
        """How many sessions each tab of this person's page has."""
        return count_tabs(self.store.counts(_whose(person, query)))

    def owners(self, person: Person) -> list[str]:
        """Whose sessions this person may look at, where there is a choice."""
        return self.store.owners() if person.admin else []

    # Stop

    def get(self, person: Person, session_id: str) -> Session:
        """The session, if this person may see it; else NotFound, whether or not it exists."""
        session = self.store.get(session_id)
        if session is None or not person.may_see(session):
            raise NotFound("There is no such session.")
        return session

    def stop(self, person: Person, session_id: str) -> Session:
        """End a session in any state; one that is over stays as it is."""
        return self.stop_all(person, [session_id])[0]

    def get_many(self, person: Person, session_ids: Iterable[str]) -> list[Session]:
        """These sessions in this order, if this person may see all of them; else NotFound."""
        wanted = list(dict.fromkeys(session_ids))
        found = {s.id: s for s in self.store.get_many(wanted) if person.may_see(s)}
        if len(found) < len(wanted):
            one = "There is no such session."
            raise NotFound(one if len(wanted) == 1 else "Not all of these sessions exist.")
        return [found[session] for session in wanted]

    def stop_all(self, person: Person, session_ids: Iterable[str]) -> list[Session]:
        """End sessions in any state; those that are over stay as they are.

        They are marked in one transaction, before Slurm hears of it: when Slurm does not answer
        or we crash, reconcile carries the wish out.
        """
        wanted = [session.id for session in self.get_many(person, session_ids)]
        changed = self.store.change_all(
            wanted,
            WAITING | {State.RUNNING},
            state=State.ENDING,
            stop_requested=self.clock(),
            stopped_by=person.name,
        )
        self._launches.cancel(*changed)
        lines = [(session.id, _described(person, session)) for session in changed]
        self._administration.record_all(person.name, "session.end", lines)
        for session in changed:
            self.access.close_session(session.id)
        return self.get_many(person, wanted)

    def give_up(self, session: Session) -> None:
        """End a session that started and was never heard of."""
        self.store.change(
            session.id,
            {State.STARTING},
            state=State.ENDING,
            stop_requested=self.clock(),
            stopped_by=NEVER_CALLED,
        )
        self.cancel_again(session)

    def cancel_again(self, session: Session) -> None:
        """Repeat the wish of stop(), for reconcile: when the owner's turn comes."""
        name = f"cancel {session.id}"
        self.later(f"{session.owner}/cancel", name, lambda: self._launches.cancel(session))

    # Time and holds

    def extend(self, person: Person, session_id: str, minutes: int | None = None) -> Session:
        """Give a running session more time (see Tending)."""
        return self._tending.extend(person, self.get(person, session_id), minutes)

    def extension(self, session: Session) -> int:
        """How many minutes more the usual extension would give now; 0 when there is none."""
        return self._tending.next_extension(session)

    def keep(self, person: Person, session_id: str) -> Session:
        """Let a session that nobody uses go on (see Tending)."""
        return self._tending.keep_alive(person, self.get(person, session_id))

    def release(self, person: Person, session_id: str) -> Session:
        """Take a waiting session's hold away, if it is its owner's own."""
        return self._tending.release(person, self.get(person, session_id))

    def log_size(self, person: Person, session_id: str) -> int:
        """Bytes in a session's log."""
        session = self.get(person, session_id)
        self._tending.record_log_access(person, session)
        return self.files.log_size(session.owner, session.id)

    def read_log(self, person: Person, session_id: str, offset: int, limit: int = 1 << 20) -> bytes:
        """Part of a session's log, from a byte offset on."""
        session = self.get(person, session_id)
        self._tending.record_log_access(person, session)
        return self.files.read_log(session.owner, session.id, offset, min(limit, MOST_OF_A_LOG))


def _proven(session: Session, message: ReadyMessage) -> bool:
    """Whether Slurm has said before that this job holds this node, so that it need not again."""
    known = session.job_id, session.node
    same = session.ready is not None and known == (message.job_id, message.node)
    return same and session.address is not None


def _described(person: Person, session: Session) -> str:
    return session.name if session.owner == person.name else f"{session.name} of {session.owner}"


def _whose(person: Person, query: ListQuery) -> str | None:
    return query.owner if person.admin else person.name


def _cpu_percent(session: Session, cpu_seconds: float, now: datetime) -> float | None:
    """Percent of one core used since the last heartbeat."""
    if session.usage_at is None or session.cpu_seconds is None:
        return None
    span = (now - session.usage_at).total_seconds()
    used = cpu_seconds - session.cpu_seconds
    if span <= 0 or used < 0:
        return None
    # Two reports may come in quick succession, and what they say is the runner's word. Slurm may
    # round cores up to whole ones with all their threads, and no further.
    return min(round(100 * used / span, 1), 100.0 * MOST_THREADS * session.cpus)
