"""The apps of running sessions in which a file or folder can be opened."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.auth.person import Person
from portal.core.files.in_session import path_in_session
from portal.core.launch.mounts import storage_of
from portal.core.session.query import ListQuery
from portal.core.session.session import Session, State
from portal.web.context import services


@dataclass(frozen=True)
class Opening:
    """An app that can open it."""

    session: Session
    app: str
    title: str
    icon: str
    path: str
    """Where the file is, below the session's home."""


def live_sessions(who: Person) -> list[Session]:
    """The user's own sessions that are waiting or running."""
    query = ListQuery(state="running", owner=who.name, limit=100)
    found = services().sessions.query(who, query).sessions
    return [session for session in found if session.owner == who.name]


def openings(who: Person, location: str) -> list[Opening]:
    """The apps that can open what is at a location."""
    catalog, found = services().catalog(), []
    storage = storage_of(who.name, services().settings.sessions.storage)
    for session in live_sessions(who):
        running = session.state is State.RUNNING
        path = path_in_session(session, location, storage) if running else ""
        for app in catalog.offered(session) if path else []:
            if app.files:
                found.append(Opening(session, app.name, app.title, app.icon, path))
    return found
