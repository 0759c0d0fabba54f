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

    def note_image(self, session: Session, detected: Sequence[str]) -> tuple[str, ...]:
        """Return the site's apps that a session's runner has detected in its image.

        They apply to this session only, since its owner controls the report. They are stored for
        the image, and so for all users, only if the session is an administrator's.
        """
        catalog, image = self._catalog(), (session.environment, session.version)
        apps = tuple(name for name in dict.fromkeys(detected) if name in catalog.apps)
        if session.image:
            return apps  # a user-supplied image: other sessions may have another file of this name
        if apps and apps != catalog.detected.get(image) and self._is_admin(session.owner):
            self._store.save_image_apps(*image, apps)
        return apps

    def states(self, session: str) -> dict[str, AppState]:
        """The stored states of a session's opened apps."""
        return self._store.app_states(session)

    def note_app(
        self,
        session: Session,
        app: str,
        state: AppState,
        message: str = "",
        tail: str = "",
        details: str | None = None,
    ) -> None:
        """Store the runner's report about an app, and add or remove its routes. Idempotent.

        An app that was never opened is ignored. `tail` is the end of its log; None leaves the
        details unchanged.
        """
        opened_apps = {opened.app: opened for opened in self._store.apps(session.id)}
        if app not in opened_apps:
            return
        # A heartbeat may report a failure before the report that explains it. An app that starts
        # slowly is reported several times, each time with more of its log.
        has_news = message or details
        explained = opened_apps[app].message and state is not AppState.STARTING
        if opened_apps[app].state == state and (explained or not has_news):
            return
        self._store.set_app(session.id, app, state, message, tail, details)
        self._proxy.server_changed(session, app, state)
