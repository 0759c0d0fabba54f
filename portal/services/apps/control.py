"""Stopping and restarting the processes of apps."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.apps.access import AppState, OpenApp
from portal.core.apps.catalog import AppSpec, Catalog
from portal.core.auth.person import Person
from portal.core.interfaces.systems import RecordEvent
from portal.core.session.session import OVER, Session, State
from portal.errors import Conflict, NotFound
from portal.services.apps.apps import Apps
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.starter import AppStarter
from portal.store.access import AccessStore


class AppControl:
    """Stops and restarts apps for session owners; access to them stays as it is."""

    def __init__(
        self,
        apps: Apps,
        store: AccessStore,
        starter: AppStarter,
        proxy: ProxyRoutes,
        catalog: Callable[[], Catalog],
        record: RecordEvent,
    ) -> None:
        self._apps = apps
        self._store = store
        self._starter = starter
        self._proxy = proxy
        self._catalog = catalog
        self._record = record

    def stop(self, person: Person, session_id: str, app: str) -> None:
        """Stop an app and everything that runs in it. Idempotent.

        Raises NotFound, Conflict for a session that is over or an app that was never opened,
        Unavailable if the session does not answer.
        """
        session, server, opened = self._find(person, session_id, app)
        self._stop(session, opened)
        self._record(person.name, "app.stop", session.id, f"{server.title} of {session.name}")

    def restart(self, person: Person, session_id: str, app: str) -> None:
        """Stop an app, and start it as before; raises as `stop` does."""
        session, server, opened = self._find(person, session_id, app)
        self._stop(session, opened)
        stopped = next(a for a in self._store.apps(session.id) if a.app == server.name)
        if session.ready is None:
            self._store.set_app(session.id, server.name, AppState.WANTED, "", "")
        else:
            self._starter.start(session, server, stopped)
        self._record(person.name, "app.restart", session.id, f"{server.title} of {session.name}")

    def _stop(self, session: Session, opened: OpenApp) -> None:
        if session.ready is None:  # no runner has a request yet
            self._store.set_app(session.id, opened.app, AppState.STOPPED, "", "")
            return
        self._starter.stop(session, opened.app)
        self._proxy.server_changed(session, opened.app, AppState.STOPPED)

    def _find(self, person: Person, session_id: str, app: str) -> tuple[Session, AppSpec, OpenApp]:
        """The session, and the app whose process serves this one."""
        session = self._apps.get_own(person, session_id)
        spec = next((spec for spec in self._apps.offered(session) if spec.name == app), None)
        if spec is None:
            raise NotFound(f"This session has no app named {app}.")
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over, and its apps with it.")
        opened = next((a for a in self._store.apps(session.id) if a.app == spec.server), None)
        if opened is None:
            raise Conflict(f"{spec.title} has not been opened.")
        return session, self._catalog().apps[spec.server], opened
