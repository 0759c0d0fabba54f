"""Builds the response models of sessions, for the API and for the pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from portal.core.apps.access import OpenApp
from portal.core.cluster.usage import SlurmStatus
from portal.core.session.session import LIVE, Session
from portal.web.api.models.sessions import SessionContext, SessionOut
from portal.web.context import person, services, site_rules


def session_response(session: Session) -> SessionOut:
    """The response model of one session."""
    return session_responses([session])[0]


def session_responses(
    sessions: Sequence[Session], status: SlurmStatus | None = None
) -> list[SessionOut]:
    """The response models of sessions; the apps of all of them take a single query."""
    with services().snapshot():
        return _responses(sessions, status or services().cluster.slurm_status())


def _responses(sessions: Sequence[Session], status: SlurmStatus) -> list[SessionOut]:
    context = SessionContext(
        status=status,
        now=services().clock(),
        origins=services().settings.web.origins,
        rules=site_rules(),
        gpus=services().gpus,
        storage=services().settings.sessions.storage,
        naming=services().catalog().naming,
        holdings=services().sessions.holdings(person().name, sessions),
    )
    opened = _opened([session.id for session in sessions if session.state in LIVE])
    return [
        SessionOut.of(session, services().apps.offered(session), opened[session.id], context)
        for session in sessions
    ]


def _opened(live: Sequence[str]) -> defaultdict[str, list[OpenApp]]:
    """The opened apps of these sessions, by session id; only live sessions have any."""
    opened: defaultdict[str, list[OpenApp]] = defaultdict(list)
    for app in services().apps.opened_in(live) if live else ():
        opened[app.session].append(app)
    return opened
