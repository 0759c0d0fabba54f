"""SSH access to sessions: their endpoints, and the user's key for all of them."""

from __future__ import annotations

from portal.core.apps.access import AppLink, AppOptions
from portal.core.apps.catalog import AppSpec
from portal.core.apps.ssh import SshEndpoint
from portal.core.auth.person import Person
from portal.core.interfaces.systems import RecordEvent, UserFiles
from portal.core.session.session import Session
from portal.errors import NotFound
from portal.services.apps.apps import UNCHANGED, Apps


class SshAccess:
    """SSH endpoints of sessions, and their owners' private key (id_container)."""

    def __init__(self, apps: Apps, files: UserFiles, host: str, record: RecordEvent) -> None:
        self._apps = apps
        self._files = files
        self._host = host
        self._record = record

    def endpoint(self, person: Person, session_id: str) -> SshEndpoint:
        """The endpoint of the user's own session; raises NotFound if there is none."""
        session = self._apps.get_own(person, session_id)
        spec = self._spec(session)
        opened = next((a for a in self._apps.opened(session.id) if a.app == spec.name), None)
        return SshEndpoint(session, spec, opened, self._host)

    def _spec(self, session: Session) -> AppSpec:
        for spec in self._apps.offered(session):
            if spec.kind == "ssh":
                return spec
        raise NotFound("This session has no SSH.")

    def open(self, person: Person, session_id: str, options: AppOptions = UNCHANGED) -> AppLink:
        """Open the endpoint; raises as Apps.open_app does."""
        app = self.endpoint(person, session_id).app.name
        return self._apps.open_app(person, session_id, app, options)

    def close(self, person: Person, session_id: str) -> None:
        """Close the endpoint and cut its connections; raises as Apps.close_app does."""
        self._apps.close_app(person, session_id, self.endpoint(person, session_id).app.name)

    def key(self, person: Person) -> str:
        """The user's private key, generated if missing; all of the user's sessions accept it."""
        key = self._files.container_key(person.name)
        self._record(person.name, "ssh.key")
        return key

    def new_key(self, person: Person) -> None:
        """Replace the key, in running sessions as well."""
        self._files.container_key(person.name, new=True)
        self._record(person.name, "ssh.renew")
