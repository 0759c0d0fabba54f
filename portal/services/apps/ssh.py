"""SSH access to sessions: their endpoints, and the user's key for all of them."""

from __future__ import annotations

from portal.core.apps.access import AppLink, AppOptions
from portal.core.apps.catalog import AppSpec
from portal.core.apps.ssh import SshEndpoint
from portal.core.apps.ssh_keys import FIELD, MAX_KEYS, PublicKey, read_public_key
from portal.core.auth.person import Person
from portal.core.interfaces.systems import RecordEvent, UserFiles
from portal.core.session.session import Session
from portal.errors import FieldError, InvalidRequest, NotFound
from portal.services.apps.apps import UNCHANGED, Apps
from portal.store.sessions import SessionStore


class SshAccess:
    """SSH endpoints of sessions, and their owners' private key (id_container)."""

    def __init__(
        self,
        apps: Apps,
        sessions: SessionStore,
        files: UserFiles,
        host: str,
        record: RecordEvent,
    ) -> None:
        self._apps = apps
        self._sessions = sessions
        self._files = files
        self._host = host
        self._record = record

    def endpoint(self, person: Person, session_id: str) -> SshEndpoint:
        """The endpoint of the user's own session; raises NotFound if there is none."""
        return self._endpoint(self._apps.get_own(person, session_id))

    def _endpoint(self, session: Session) -> SshEndpoint:
        spec = self._spec(session)
        opened = next((a for a in self._apps.opened(session.id) if a.app == spec.name), None)
        return SshEndpoint(session, spec, opened, self._host)

    def by_name(self, owner: str, name: str) -> SshEndpoint | None:
        """The endpoint of an owner's live session by its name for SSH clients.

        Of several sessions with this name, an open one, else the newest; None if there is none.
        """
        matches = [s for s in self._sessions.live() if (s.owner, s.name) == (owner, name)]
        newest = sorted(matches, key=lambda session: session.created, reverse=True)
        endpoints = [self._endpoint(session) for session in newest]
        return next(iter(sorted(endpoints, key=lambda endpoint: not endpoint.is_open)), None)

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
        """Replace the key in running sessions as well, and cut their connections."""
        self._files.container_key(person.name, new=True)
        self._record(person.name, "ssh.renew")
        self._cut(person)

    def public_keys(self, person: Person) -> list[PublicKey]:
        """The public keys that the user added."""
        return self._files.public_keys(person.name)

    def add_public_key(self, person: Person, text: str) -> PublicKey:
        """Authorize a public key of the user for all of their sessions; raises InvalidRequest."""
        key = read_public_key(text)
        ids = {each.id for each in self.public_keys(person)}
        if key.id not in ids and len(ids) >= MAX_KEYS:
            problem = f"you have {MAX_KEYS} keys already; remove one first"
            raise InvalidRequest([FieldError(FIELD, problem)])
        self._files.add_public_key(person.name, key)
        self._record(person.name, "ssh.add", key.fingerprint, key.comment)
        return key

    def remove_public_key(self, person: Person, key_id: str) -> None:
        """Revoke a public key, and cut all SSH connections; raises NotFound."""
        key = next((each for each in self.public_keys(person) if each.id == key_id), None)
        if key is None:
            raise NotFound("You have no such key.")
        self._files.remove_public_key(person.name, key)
        self._record(person.name, "ssh.remove", key.fingerprint, key.comment)
        self._cut(person)

    def _cut(self, person: Person) -> None:
        """Cut the SSH connections to all of the user's sessions.

        It is not recorded which of them used a removed key. Their endpoints are open again
        afterwards; if HAProxy does not answer in between, StillOpen is raised, and the worker
        retries.
        """
        for session in self._sessions.live():
            if session.owner != person.name:
                continue
            try:
                endpoint = self._endpoint(session)
            except NotFound:
                continue
            if endpoint.is_open:
                self._apps.close_app(person, session.id, endpoint.app.name)
                self._apps.open_app(person, session.id, endpoint.app.name)
