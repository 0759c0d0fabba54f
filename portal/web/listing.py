"""Sessions as views need them: filtered by state, with their apps."""

from __future__ import annotations

from typing import Any

from portal.core.access import Person
from portal.core.ports import SlurmStatus
from portal.core.session import LIVE, Session, State
from portal.core.view import as_json
from portal.web.context import services

FILTERS = {
    "running": LIVE,
    "finished": frozenset({State.FINISHED}),
    "other": frozenset({State.FAILED}),
}


def listed(
    person: Person, states: frozenset[State], limit: int, cursor: str | None, owner: str | None
) -> tuple[list[Session], str | None]:
    """One page of the sessions that this person may see, newest first."""
    if not person.admin and owner not in (None, person.name):
        return [], None  # the same answer whether or not such a person has sessions
    whose = owner if person.admin else person.name
    return services().sessions.store.listing(whose, states, limit, cursor)


def in_full(session: Session, status: SlurmStatus | None = None) -> dict[str, Any]:
    """The session in the words of the REST API."""
    sessions = services().sessions
    offered = sessions.catalog().apps_of(session.environment, session.version)
    return as_json(
        session,
        status or sessions.status.slurm_status(),
        offered,
        services().access.opened(session.id),
        services().clock(),
    )
