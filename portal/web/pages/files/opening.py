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
    """An app that can open a file or folder."""

    session: Session
    app: str
    title: str
    icon: str
    path: str
    """The path of the file, relative to the session's home."""


def live_sessions(person: Person) -> list[Session]:
    """The user's own sessions that are waiting or running."""
    query = ListQuery(state="running", owner=person.name, limit=100)
    sessions = services().sessions.query(person, query).sessions
    return [session for session in sessions if session.owner == person.name]


def openings(person: Person, location: str) -> list[Opening]:
    """The apps that can open the file or folder at a location."""
    catalog, apps = services().catalog(), []
    storage = storage_of(person.name, services().settings.sessions.storage)
    for session in live_sessions(person):
        running = session.state is State.RUNNING
        path = path_in_session(session, location, storage) if running else ""
        for app in catalog.offered(session) if path else []:
            if app.files:
                apps.append(Opening(session, app.name, app.title, app.icon, path))
    return apps
