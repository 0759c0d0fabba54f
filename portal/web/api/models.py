"""TODO."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from portal.core.apps.access import AppState, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.apps.origins import Origins
from portal.core.cluster.gpu_offers import NO_GPUS, Gpus
from portal.core.cluster.usage import SlurmStatus
from portal.core.session.end_reasons import app_trouble
from portal.core.session.idle import idle_deadline
from portal.core.session.pending_reasons import Reason
from portal.core.session.session import Session
from portal.core.session.status import shown_limit, shown_reason, shown_state, unknown_since
from portal.core.site_rules import SiteRules
from portal.core.units import format_size

NO_RULES = SiteRules()


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
