"""A session as people see it: the same in pages and in the REST API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from portal.core.admin.administration import SiteRules
from portal.core.apps.access import AppState, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.apps.origins import Origins
from portal.core.cluster.fgpu import to_number
from portal.core.cluster.gpu_offers import NO_GPUS, Gpus, words
from portal.core.cluster.usage import room_of
from portal.core.interfaces.stores import SlurmStatus
from portal.core.launch.request import format_size
from portal.core.session.end_reasons import app_trouble
from portal.core.session.idle import idle_deadline
from portal.core.session.pending_reasons import WAIT, Reason, explain
from portal.core.session.session import OVER, SUSPENDED, Session, State

SILENT_AFTER = timedelta(seconds=15)
"""How old Slurm's last answer may be before we stop claiming to know."""

NODE_SILENT_AFTER = timedelta(seconds=45)
"""How old a runner's last report may be; it reports every ten seconds."""
ENDS_SOON = timedelta(minutes=15)
"""How long before its end people are warned."""

UNKNOWN = "UNKNOWN"
FOR_ROOM = frozenset({"Resources", "Priority"})
"""Reasons of Slurm's that may mean that a GPU is not free."""
NO_RULES = SiteRules()


def unknown_since(session: Session, status: SlurmStatus, now: datetime) -> datetime | None:
    """Since when nobody knows a live session's state; None while it is known."""
    if session.state in OVER or status.answered is None:
        return None
    if now - status.answered > SILENT_AFTER:
        return status.failing_since or status.answered
    return session.lost


def shown_state(session: Session, status: SlurmStatus, now: datetime) -> str:
    """One of PENDING, STARTING, RUNNING, ENDING, FINISHED, FAILED, UNKNOWN."""
    if unknown_since(session, status, now) is not None:
        return UNKNOWN
    return State.PENDING if session.state is State.SUBMITTING else session.state


def shown_reason(session: Session, status: SlurmStatus, now: datetime) -> Reason | None:
    """Why a session is not running yet, or why its state is not known."""
    since = unknown_since(session, status, now)
    if since is not None and since == session.lost:
        return Reason(
            "JobUnknown",
            "Slurm's queue no longer has the job, and its accounting does not answer.",
            "Open apps go on if the job does; the state shows again with accounting.",
        )
    if since is not None:
        return Reason(
            "SlurmDown",
            f"Slurm has not answered since {since:%H:%M:%S} UTC.",
            "Open apps go on; the state shows again when Slurm is back.",
        )
    match session.state:
        case State.SUBMITTING:
            return Reason("Submitting", "It is being handed to Slurm.")
        case State.PENDING:
            return _waits(session, short_of_gpu(session, status))
        case State.STARTING | State.RUNNING if session.pending_reason == SUSPENDED:
            return explain(SUSPENDED)
        case State.STARTING:
            return Reason("Starting", "The container is starting.")
        case State.RUNNING:
            return _node_silent(session, now)
        case _:
            return None


def short_of_gpu(session: Session, status: SlurmStatus) -> str:
    """That the GPU it asked for is in use, in words; "" where that is not why it waits."""
    code = (session.pending_reason or "").split(",")[0].strip()
    room = room_of(status.rooms, session.partition or "", session.gpu_kind)
    if session.fgpu is None or room is None or code not in FOR_ROOM:
        return ""
    used = to_number(room.fgpu - room.free)
    if room.free + 0.001 > session.fgpu or not used:
        return ""
    what = "a GPU" if session.gres.startswith("gpu:") else "a GPU share"
    return f"It waits for {what}: {used:g} of {words(room.fgpu)} are in use."


def _waits(session: Session, gpu: str) -> Reason:
    reason = explain(session.pending_reason)
    if gpu:
        reason = Reason(reason.code, gpu, WAIT)
    if session.requeued is None:
        return reason
    again = (
        f"Slurm put it back into the queue at {session.requeued:%H:%M} UTC; "
        "it starts again with an empty home."
    )
    if reason.code == "BeginTime":  # Slurm itself waits two minutes before it starts a job again
        return Reason(reason.code, again, "This takes minutes.")
    return Reason(reason.code, f"{again} {reason.text}", reason.advice)


def _node_silent(session: Session, now: datetime) -> Reason | None:
    heard = max(filter(None, (session.usage_at, session.ready)), default=now)
    if now - heard <= NODE_SILENT_AFTER:
        return None
    return Reason(
        "NodeSilent",
        f"The node has not reported since {heard:%H:%M:%S} UTC; open apps may not answer.",
        "If it lasts, end the session and launch it again.",
    )


def ends_soon(session: Session, now: datetime) -> bool:
    """Whether a running session is so near its end that people are warned."""
    deadline = session.deadline if session.state is State.RUNNING else None
    return deadline is not None and deadline - now <= ENDS_SOON


def shown_limit(session: Session) -> int | None:
    """Its time limit in minutes: Slurm's own, once it runs."""
    if session.deadline is None or session.started is None:
        return session.time_limit
    return round((session.deadline - session.started).total_seconds() / 60)


def elapsed(session: Session, now: datetime) -> timedelta | None:
    """How long a session has run, or ran."""
    if session.started is None:
        return None
    return max((session.ended or now) - session.started, timedelta(0))


def as_json(
    session: Session,
    status: SlurmStatus,
    offered: Sequence[AppSpec],
    opened: Sequence[OpenApp],
    now: datetime,
    origins: Origins | None = None,
    rules: SiteRules = NO_RULES,
    gpus: Gpus = NO_GPUS,
) -> dict[str, Any]:
    """The session of the REST API, version 1; with the addresses of its apps if `origins` know."""
    since = unknown_since(session, status, now)
    entries = {app.app: app for app in opened}
    return {
        "id": session.id,
        "name": session.name,
        "owner": session.owner,
        "environment": session.environment,
        "version": session.version,
        "resources": {
            "cpus": session.cpus,
            "memory": format_size(session.memory_mb),
            "shared_memory": format_size(session.shm_mb),
            "fgpu": session.fgpu,
            "gpu": gpu_of(session, gpus),
        },
        "mounts": [
            {"folder": mount.folder, "read_only": mount.read_only, "path": mount.path}
            for mount in session.mounts
        ],
        "env": list(session.env_names),
        "resource_group": session.partition,
        "time_limit": shown_limit(session),
        "state": shown_state(session, status, now),
        "unknown_since": _time(since),
        "reason": _reason(session, shown_reason(session, status, now)),
        "end": session.cause
        and {
            "cause": session.cause,
            "text": session.end_text,
            "exit_code": session.exit_code,
            "log": session.end_log,
        },
        "usage": session.usage_at
        and {
            "cpu_percent": session.cpu_percent,
            "memory": session.memory_used,
            "oom_kills": session.oom_kills,
            "gpu_memory": session.gpu_memory_used,
            "gpu_percent": session.gpu_percent,
            "gpu_kills": session.gpu_kills,
        },
        "job_id": session.job_id,
        "node": session.node,
        "created": _time(session.created),
        "started": _time(session.started),
        "deadline": _time(session.deadline),
        "last_used": _time(session.last_used),
        "log_read": session.log_read and {"at": _time(session.log_read), "by": session.log_read_by},
        "idle_deadline": _time(idle_deadline(session, rules)),
        "ended": _time(session.ended),
        "restarts": session.restarts,
        "requeued": _time(session.requeued),
        "apps": [
            _app(app, entries.get(app.name), entries.get(app.server), origins) for app in offered
        ],
    }


def gpu_of(session: Session, gpus: Gpus) -> dict[str, Any] | None:
    """The slice of a GPU that a session was granted; None where it has none."""
    if session.fgpu is None:
        return None
    return {
        "kind": session.gpu_kind,
        "title": gpus.title(session.gpu_kind),
        "memory": format_size(session.gpu_memory_mb or 0),
        "sm_percent": session.gpu_sm_percent,
    }


def app_address(app: AppSpec, opened: OpenApp | None, origins: Origins | None) -> str | None:
    """Where an app is found, without any ticket; None before anybody has opened it."""
    if opened is None or origins is None or app.kind != "web":
        return None
    return origins.url(opened.label) + app.path


def _app(
    app: AppSpec, opened: OpenApp | None, server: OpenApp | None, origins: Origins | None
) -> dict[str, Any]:
    failed = server is not None and server.state is AppState.FAILED
    since = opened.public_since if opened else None
    return {
        "name": app.name,
        "title": app.title,
        "state": server.state if server else None,
        "message": app_trouble(app.title, server.message) if server and failed else "",
        "log": server.log if server and failed else "",
        "url": app_address(app, opened, origins),
        "public": since is not None,
        "public_since": _time(since),
        "still_open": opened is not None and opened.still_open,
    }


def _reason(session: Session, reason: Reason | None) -> dict[str, Any] | None:
    if reason is None:
        return None
    return {
        "code": reason.code,
        "text": reason.text,
        "advice": reason.advice,
        "ahead": session.ahead,
        "estimated_start": _time(session.estimated_start),
    }


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
