"""Sessions as views need them: with their apps, in the words of the REST API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from portal.core.apps.access import OpenApp
from portal.core.cluster.usage import SlurmStatus
from portal.core.session.session import LIVE, Session
from portal.web.api.models import as_json
from portal.web.context import services


def in_full(session: Session, status: SlurmStatus | None = None) -> dict[str, Any]:
    """One session in the words of the REST API."""
    return all_in_full([session], status)[0]


def all_in_full(
    sessions: Sequence[Session], status: SlurmStatus | None = None
) -> list[dict[str, Any]]:
    """Sessions in the words of the REST API; however many, the database is asked once."""
    access, origins = services().apps, services().settings.web.origins
    status = status or services().sessions.status.slurm_status()
    now, rules = services().clock(), services().administration.site_rules()
    opened = _opened([session.id for session in sessions if session.state in LIVE])
    return [
        as_json(
            session,
            status,
            access.offered(session),
            opened[session.id],
            now,
            origins,
            rules,
            services().sessions.gpus,
        )
        for session in sessions
    ]


def _opened(live: Sequence[str]) -> defaultdict[str, list[OpenApp]]:
    """The open apps of these sessions; those that are over have none."""
    opened: defaultdict[str, list[OpenApp]] = defaultdict(list)
    for app in services().apps.opened_in(live) if live else ():
        opened[app.session].append(app)
    return opened
