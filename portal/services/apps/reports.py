"""Runners' reports about apps: those that an image can run, and the state of started ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from portal.core.apps.access import AppState
from portal.core.apps.catalog import Catalog
from portal.core.session.session import Session
from portal.services.apps.proxy import ProxyRoutes
from portal.store.access import AccessStore


class AppReports:
    """Stores runners' reports about apps, and opens or closes routes accordingly."""

    def __init__(
        self,
        store: AccessStore,
        proxy: ProxyRoutes,
        catalog: Callable[[], Catalog],
        is_admin: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._proxy = proxy
        self._catalog = catalog
        self._is_admin = is_admin

    def note_image(self, session: Session, found: Sequence[str]) -> tuple[str, ...]:
        """Return those of the site's apps that a session has found in its image.

        They apply to this session only, since its owner controls what it reports. They are stored
        for the image, and so for all users, only if the session is an administrator's.
        """
        catalog, image = self._catalog(), (session.environment, session.version)
        known = tuple(name for name in dict.fromkeys(found) if name in catalog.apps)
        if session.image:
            return known  # what it is named says nothing about other sessions
        if known and known != catalog.detected.get(image) and self._is_admin(session.owner):
            self._store.save_image_apps(*image, known)
        return known

    def note_app(
        self,
        session: Session,
        app: str,
        state: AppState,
        message: str = "",
        tail: str = "",
        details: str | None = None,
    ) -> None:
        """Store what the runner reports about an app, and add or remove its routes. Idempotent.

        An app that was never opened is ignored. `tail` is the end of its log; None leaves the
        details unchanged.
        """
        known = {opened.app: opened for opened in self._store.apps(session.id)}
        if app not in known:
            return
        # A heartbeat may report a failure before the report that explains it. An app that starts
        # slowly is reported several times, each time with more of its log.
        new, told = message or details, known[app].message and state is not AppState.STARTING
        if known[app].state == state and (told or not new):
            return
        self._store.set_app(session.id, app, state, message, tail, details)
        self._proxy.server_changed(session, app, state)
