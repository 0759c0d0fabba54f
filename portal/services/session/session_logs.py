"""The log of a session's job, read from its owner's home as that user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from portal.core.apps.catalog import AppSpec
from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock, RecordEvent, UserFiles
from portal.core.session.session import LIVE, OVER, Facts, Session
from portal.errors import FieldError, InvalidRequest
from portal.store.sessions import SessionStore

MAX_READ = 1 << 20
"""Bytes per read."""
SAME_READING = timedelta(minutes=10)
"""Polls of a page that follows a log; within this time they are one audit event."""


class SessionLogs:
    """Reads logs, and records when an administrator reads another user's log."""

    def __init__(
        self,
        get_session: Callable[[Person, str], Session],
        store: SessionStore,
        files: UserFiles,
        record: RecordEvent,
        clock: Clock,
        offered: Callable[[Session], Sequence[AppSpec]],
    ) -> None:
        self._get_session = get_session
        self._store = store
        self._files = files
        self._record = record
        self._clock = clock
        self._offered = offered

    def app(self, person: Person, session_id: str, app: str) -> str:
        """The name under which the log has an app's lines; raises NotFound, InvalidRequest."""
        session = self._get_session(person, session_id)
        servers = {spec.name: spec.server for spec in self._offered(session)}
        if app not in servers:
            raise InvalidRequest([FieldError("app", "this session has no such app")])
        return servers[app]

    def size(self, person: Person, session_id: str) -> int:
        """Bytes in a session's log; raises NotFound, Unavailable, Conflict."""
        session = self._get_session(person, session_id)
        self._record_reading(person, session)
        return self._files.log_size(session.owner, session.id)

    def read(self, person: Person, session_id: str, offset: int, limit: int = MAX_READ) -> bytes:
        """Up to `limit` bytes of a session's log from a byte offset on; raises as `size` does."""
        session = self._get_session(person, session_id)
        self._record_reading(person, session)
        return self._files.read_log(session.owner, session.id, offset, min(limit, MAX_READ))

    def _record_reading(self, person: Person, session: Session) -> None:
        """Record that an administrator reads a user's log, visible to the owner as well."""
        if person.name == session.owner:
            return
        now = self._clock()
        recent = session.log_read is not None and now - session.log_read < SAME_READING
        if recent and session.log_read_by == person.name:
            return
        unchanged = {"log_read": session.log_read, "log_read_by": session.log_read_by}
        facts = Facts(log_read=now, log_read_by=person.name)
        # A concurrent reading by another administrator is recorded in addition to this one.
        if not self._store.change_if(session.id, LIVE | OVER, unchanged, **facts):
            later = self._store.get(session.id)
            if later is None or later.log_read_by == person.name:
                return
            self._store.change(session.id, LIVE | OVER, **facts)
        self._record(person.name, "log.read", session.id, f"{session.name} of {session.owner}")
