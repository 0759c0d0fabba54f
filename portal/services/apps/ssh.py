"""SSH into sessions: opening the door, and the key that fits all of a person's doors."""

from __future__ import annotations

from portal.core.apps.access import AppOptions
from portal.core.apps.catalog import AppSpec
from portal.core.apps.ssh import SshEndpoint
from portal.core.auth.person import Person
from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.systems import RecordEvent, UserFiles
from portal.core.session.session import Session
from portal.errors import NotFound
from portal.services.apps.apps import NO_WISH, AppLink, Apps


class SshAccess:
    """Doors of sessions, and their owners' key (id_container)."""

    def __init__(
        self, sessions: SessionStore, apps: Apps, files: UserFiles, host: str, note: RecordEvent
    ) -> None:
        self._sessions = sessions
        self._apps = apps
        self._files = files
        self._host = host
        self._note = note

    def door(self, person: Person, session_id: str) -> SshEndpoint:
        """The door of one's own session; raises NotFound where there is none."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session.")
        spec = self._spec(session)
        opened = next((a for a in self._apps.opened(session.id) if a.app == spec.name), None)
        return SshEndpoint(session, spec, opened, self._host)

    def _spec(self, session: Session) -> AppSpec:
        for spec in self._apps.offered(session):
            if spec.kind == "ssh":
                return spec
        raise NotFound("This session has no SSH.")

    def open(self, person: Person, session_id: str, wish: AppOptions = NO_WISH) -> AppLink:
        """Open the door; raises as Access.open_app does."""
        app = self.door(person, session_id).app.name
        return self._apps.open_app(person, session_id, app, wish)

    def close(self, person: Person, session_id: str) -> None:
        """Close the door and cut every connection through it."""
        self._apps.close_app(person, session_id, self.door(person, session_id).app.name)

    def key(self, person: Person) -> str:
        """One's own private key, made now if there is none; all one's sessions take it then."""
        key = self._files.container_key(person.name)
        self._note(person.name, "ssh.key")
        return key

    def new_key(self, person: Person) -> None:
        """Put a new key in the old one's place, in running sessions as well."""
        self._files.container_key(person.name, new=True)
        self._note(person.name, "ssh.renew")
