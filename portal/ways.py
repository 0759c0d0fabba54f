"""The ways into apps: HAProxy's map follows the store, never the other way round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from portal.core.access import (
    AppState,
    Grant,
    OpenApp,
    Traffic,
    public_key,
    route_target,
    ssh_key,
)
from portal.core.app import Catalog
from portal.core.ports import Routes
from portal.core.session import Session, State
from portal.core.stores import AccessStore, SessionStore


class Ways:
    """Opens and shuts the ways from browsers, and from SSH clients, to apps."""

    def __init__(
        self,
        sessions: SessionStore,
        store: AccessStore,
        routes: Routes,
        catalog: Callable[[], Catalog],
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._routes = routes
        self._catalog = catalog

    def server_of(self, app: str) -> str:
        """The app whose process answers for this one."""
        spec = self._catalog().apps.get(app)
        return spec.server if spec else app

    def kind_of(self, app: str) -> str:
        """How people come to this app."""
        spec = self._catalog().apps.get(app)
        return spec.kind if spec else "web"

    def open(self, key: str, session: Session, app: str) -> None:
        """Let through whoever has this key, if the session can be reached."""
        target = route_target(session, self.server_of(app))
        if target is not None:
            self._routes.add(key, target)

    def shut(self, *keys: str) -> None:
        """Let nobody through who has one of these keys, and cut who is inside."""
        self._routes.remove(*keys)

    def open_standing(self, session: Session, opened: OpenApp) -> None:
        """Open the way that needs no cookie, where the app has one: SSH's, or the public one."""
        for key in self.keys_without_cookie(opened):
            self.open(key, session, opened.app)

    def keys_without_cookie(self, opened: OpenApp) -> list[str]:
        """The keys under which an app is reached without a cookie of its own."""
        if self.kind_of(opened.app) == "ssh":
            return [ssh_key(opened.label)]
        return [public_key(opened.label)] if opened.public_since else []

    def server_changed(self, session: Session, server: str, state: AppState) -> None:
        """Open or shut all ways to the apps that one process answers for."""
        keys = [
            (grant.key, grant.app)
            for grant in self._store.grants(session=session.id)
            if self.server_of(grant.app) == server
        ]
        for opened in self._store.apps(session.id):
            if self.server_of(opened.app) == server:
                keys += [(key, opened.app) for key in self.keys_without_cookie(opened)]
        if state is not AppState.READY:
            self.shut(*(key for key, _ in keys))
            return
        for key, app in keys:
            self.open(key, session, app)

    def shut_grants(self, grants: Sequence[Grant]) -> None:
        """Shut the ways of browsers."""
        self.shut(*(grant.key for grant in grants))

    def traffic(self) -> dict[str, Traffic]:
        """What browsers have sent, by the app's gateway name."""
        return self._routes.traffic()

    def restore(self) -> bool:
        """Fill HAProxy's map again after it was restarted; True when that was needed."""
        if not self._routes.lost():
            return False
        self._routes.know_background(self._background())
        filled = dict(self._standing())
        self._routes.fill(filled)
        # What was taken away meanwhile must not come back with the filling.
        self.shut(*(filled.keys() - dict(self._standing()).keys()))
        return True

    def _background(self) -> list[str]:
        apps = self._catalog().apps.values()
        return [f"{app.server}{path}" for app in apps for path in app.background]

    def _standing(self) -> Iterator[tuple[str, str]]:
        """The ways that should be open, from the store alone."""
        running = {s.id: s for s in self._sessions.live() if s.state is State.RUNNING}
        apps = self._store.apps_of(running)
        ready = {(app.session, app.app) for app in apps if app.state is AppState.READY}
        keys = [(grant.key, grant.session, grant.app) for grant in self._store.grants()]
        keys += [
            (key, app.session, app.app) for app in apps for key in self.keys_without_cookie(app)
        ]
        for key, session, app in keys:
            server = self.server_of(app)
            if (session, server) not in ready:
                continue
            target = route_target(running[session], server)
            if target is not None:
                yield key, target
