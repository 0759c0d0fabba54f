"""Response models for sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from portal.core.apps.access import OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.apps.origins import Origins
from portal.core.apps.titles import Naming, plain_naming
from portal.core.cluster.gpu_offers import NO_GPUS, Gpus
from portal.core.cluster.usage import SlurmStatus
from portal.core.session.holders import NOTHING, Holdings
from portal.core.session.idle import idle_deadline
from portal.core.session.pending_reasons import Reason
from portal.core.session.session import Cause, Session
from portal.core.session.status import (
    is_unlimited,
    shown_limit,
    shown_reason,
    shown_state,
    unknown_since,
)
from portal.core.site_rules import SiteRules
from portal.web.api.models.apps import AppOut
from portal.web.api.models.base import ResponseModel, Time
from portal.web.api.models.session_resources import (
    MountOut,
    SessionHomeOut,
    SessionResourcesOut,
    mounts_of,
    resources_of,
)

NO_RULES = SiteRules()


class SessionState(StrEnum):
    """The state of a session as shown to users."""

    PENDING = "PENDING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    ENDING = "ENDING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


class ReasonOut(ResponseModel):
    """Why a session or a job is not running yet, or why a session's state is unknown."""

    code: str
    """Slurm's reason, or one of Slipway's own."""
    text: str
    advice: str
    ahead: int | None
    """Jobs ahead of it in the queue."""
    estimated_start: Time | None
    begin: Time | None = None
    """The end of the maintenance during which it was launched; omitted for other reasons."""

    @classmethod
    def of(cls, session: Session, reason: Reason | None) -> ReasonOut | None:
        """Build it; None if there is no reason."""
        if reason is None:
            return None
        return cls(
            code=reason.code,
            text=reason.text,
            advice=reason.advice,
            ahead=session.ahead,
            estimated_start=session.estimated_start,
            **({"begin": reason.begin} if reason.begin else {}),
        )


class EndOut(ResponseModel):
    """How a session ended."""

    cause: Cause
    text: str
    exit_code: int | None
    seen: Time | None
    """When its owner dismissed the notice of it."""
    log: str = ""
    """The last lines of its log, if it failed; omitted in lists."""

    @classmethod
    def of(cls, session: Session) -> EndOut | None:
        """Build it; None before the end."""
        if session.cause is None:
            return None
        return cls(
            cause=session.cause,
            text=session.end_text or "",
            exit_code=session.exit_code,
            seen=session.end_seen,
            log=session.end_log,
        )

    def without_log(self) -> EndOut:
        """A copy without the log; the field is then omitted from the JSON."""
        return EndOut(cause=self.cause, text=self.text, exit_code=self.exit_code, seen=self.seen)


class SessionUsageOut(ResponseModel):
    """A session's usage, as last reported by its runner."""

    cpu_percent: float | None
    """Percent of one core."""
    memory: int | None
    """Bytes."""
    memory_peak: int | None
    """The largest value so far."""
    oom_kills: int
    """Processes killed for exceeding the memory."""
    oom_at: Time | None
    """When the last of them was killed."""
    oom_program: str
    """Its name; empty if unknown."""
    oom_seen: Time | None
    """When the owner dismissed the notice of it."""
    gpu_memory: int | None
    """Bytes."""
    gpu_percent: float | None
    """Percent of the whole GPU."""
    gpu_kills: int
    """Processes killed for exceeding the GPU memory."""

    @classmethod
    def of(cls, session: Session) -> SessionUsageOut | None:
        """Build it; None before the first report."""
        if session.usage_at is None:
            return None
        return cls(
            cpu_percent=session.cpu_percent,
            memory=session.memory_used,
            memory_peak=session.memory_peak,
            oom_kills=session.oom_kills,
            oom_at=session.oom_at,
            oom_program=session.oom_program,
            oom_seen=session.oom_seen,
            gpu_memory=session.gpu_memory_used,
            gpu_percent=session.gpu_percent,
            gpu_kills=session.gpu_kills,
        )


class LogReadOut(ResponseModel):
    """The last time that an administrator read a session's log, and that administrator."""

    at: Time
    by: str

    @classmethod
    def of(cls, session: Session) -> LogReadOut | None:
        """Build it; None if no administrator has read the log."""
        if session.log_read is None:
            return None
        return cls(at=session.log_read, by=session.log_read_by or "")


@dataclass(frozen=True)
class SessionContext:
    """Inputs of a session's response besides the session itself."""

    status: SlurmStatus
    now: datetime
    origins: Origins | None = None
    """If None, apps have no addresses."""
    rules: SiteRules = NO_RULES
    gpus: Gpus = NO_GPUS
    storage: str = "storage"
    """The path of the storage folders, as in the settings."""
    holdings: Holdings = NOTHING
    """The owner's sessions that hold resources, for the reasons why others wait."""
    naming: Callable[[str, str], Naming] = plain_naming
    """The names of an environment and its version, as pages show them."""
    closed: dict[str, AppOut] = field(default_factory=dict)
    """Apps that have not been opened, by name; they are the same for all sessions of a list."""

    def app(self, app: AppSpec, entries: Mapping[str, OpenApp]) -> AppOut:
        """One app of a session; `entries` are the session's opened apps by name."""
        opened, server = entries.get(app.name), entries.get(app.server)
        if opened or server:
            return AppOut.of(app, opened, server, self.origins)
        if app.name not in self.closed:
            self.closed[app.name] = AppOut.of(app, None, None)
        return self.closed[app.name]


class SessionOut(ResponseModel):
    """A session."""

    id: str
    name: str
    named: bool
    """Whether its owner chose the name."""
    owner: str
    environment: str
    environment_title: str
    """The environment's name on pages, such as "C++"."""
    version: str
    version_label: str
    """The version's name beside it, such as "GCC 10"."""
    image: str
    """The owner's own image; empty for an image of the site."""
    resources: SessionResourcesOut
    mounts: list[MountOut]
    home: SessionHomeOut
    preset: str
    """The preset that it was launched from; empty if none."""
    hub_prefix: str
    """The path of JupyterHub's server in it; empty without one."""
    env: list[str]
    """Names of the environment variables; the values may be secret."""
    resource_group: str | None
    account: str
    qos: str
    reservation: str
    constraint: str
    """Slurm's options as they were chosen; empty: Slurm's default."""
    exclusive: bool
    """Whether it requested a node for itself."""
    time_limit: int | None
    """Minutes; null without a limit, and while it is not known."""
    unlimited: bool
    """Whether it has no time limit."""
    state: SessionState
    unknown_since: Time | None
    reason: ReasonOut | None
    end: EndOut | None
    usage: SessionUsageOut | None
    job_id: str | None
    node: str | None
    created: Time
    started: Time | None
    ready: Time | None
    """When its apps first became reachable."""
    deadline: Time | None
    """When its time limit is reached."""
    last_used: Time | None
    """Last use by a person or a computation."""
    log_read: LogReadOut | None
    idle_deadline: Time | None
    """When it will be ended unless it is used."""
    ended: Time | None
    restarts: int
    """The number of times that Slurm has requeued it after a start."""
    requeued: Time | None
    apps: list[AppOut]

    @classmethod
    def of(
        cls,
        session: Session,
        offered: Sequence[AppSpec],
        opened: Sequence[OpenApp],
        context: SessionContext,
    ) -> SessionOut:
        """Build it from a session, its offered apps and its opened apps."""
        status, now = context.status, context.now
        naming = context.naming(session.environment, session.version)
        entries = {app.app: app for app in opened}
        return cls(
            id=session.id,
            name=session.name,
            named=session.named,
            owner=session.owner,
            environment=session.environment,
            environment_title=naming.environment,
            version=session.version,
            version_label=naming.version,
            image=session.image,
            resources=resources_of(session, context.gpus),
            mounts=mounts_of(session, context.storage),
            home=SessionHomeOut.of(session),
            preset=session.preset,
            hub_prefix=session.hub_prefix,
            env=list(session.env_names),
            resource_group=session.partition,
            **vars(session.slurm),
            time_limit=shown_limit(session),
            unlimited=is_unlimited(session),
            state=SessionState(shown_state(session, status, now)),
            unknown_since=unknown_since(session, status, now),
            reason=ReasonOut.of(session, shown_reason(session, status, now, context.holdings)),
            end=EndOut.of(session),
            usage=SessionUsageOut.of(session),
            job_id=session.job_id,
            node=session.node,
            created=session.created,
            started=session.started,
            ready=session.ready,
            deadline=session.deadline,
            last_used=session.last_used,
            log_read=LogReadOut.of(session),
            idle_deadline=idle_deadline(session, context.rules),
            ended=session.ended,
            restarts=session.restarts,
            requeued=session.requeued,
            apps=[context.app(app, entries) for app in offered],
        )

    def for_list(self) -> SessionOut:
        """A copy without the log of its end, which few list clients need."""
        return self if self.end is None else self.model_copy(update={"end": self.end.without_log()})


class SessionListOut(ResponseModel):
    """The sessions that a request created or changed."""

    sessions: list[SessionOut]


class SessionPageOut(ResponseModel):
    """A page of the list of sessions."""

    sessions: list[SessionOut]
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class LogOut(ResponseModel):
    """Part of a session's log."""

    log: str
    offset: int
    next_offset: int
    """Offset of the next part, in bytes."""
