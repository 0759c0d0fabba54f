"""The ways into apps: HAProxy's map follows the store, never the other way round."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from portal.core.apps.access import AppState, OpenApp, public_key, route_target, ssh_key
from portal.core.apps.catalog import Catalog, split_request
from portal.core.interfaces.access import AccessStore
from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.systems import Routes
from portal.core.session.idle import Traffic
from portal.core.session.session import Session, State
from portal.errors import StillOpen, Unavailable

log = logging.getLogger(__name__)


class ProxyRoutes:
    """Opens and shuts the ways from browsers, and from SSH clients, to apps.

    What is opened is stored before, and looked at once more after HAProxy has heard of it; what is
    taken away is stored together with the keys that HAProxy must forget (AccessStore). So a crash
    at any line leaves nothing open for longer than until the worker's next look.
    """

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

    def add_route(self, key: str, session: Session, app: str) -> None:
        """Let through whoever has this key, if the session can be reached and the key stands."""
        target = route_target(session, self._catalog().server_of(app))
        if target is None:
            return
        self._routes.add(key, target)
        if not self._stands(key, session.id, app):  # it was taken away meanwhile
            self._routes.remove(key)

    def _stands(self, key: str, session: str, app: str) -> bool:
        label, _, secret = key.partition(".")
        entry = self._store.at_origin(label, secret)
        if entry is None or (entry.opened.session, entry.opened.app) != (session, app):
            return False
        return entry.grant is not None or key in self.standing_keys(entry.opened)

    def revoke(self, *keys: str) -> None:
        """Shut what was taken away and cut who is inside; raises StillOpen when that fails."""
        try:
            self._routes.remove(*keys)
        except Unavailable as error:
            raise StillOpen from error
        self._store.removed(keys)

    def revoke_later(self, *keys: str) -> None:
        """The same for keys that nobody waits for: the worker tries again where it fails."""
        try:
            self.revoke(*keys)
        except StillOpen as error:
            log.warning("%d ways: %s", len(keys), error)

    def add_standing_routes(self, session: Session, opened: OpenApp) -> None:
        """Open the way that needs no cookie, where the app has one: SSH's, or the public one."""
        for key in self.standing_keys(opened):
            self.add_route(key, session, opened.app)

    def standing_keys(self, opened: OpenApp) -> list[str]:
        """The keys under which an app is reached without a cookie of its own."""
        if self._catalog().kind_of(opened.app) == "ssh":
            return [] if opened.shut else [ssh_key(opened.label)]
        return [public_key(opened.label)] if opened.public_since else []

    def server_changed(self, session: Session, server: str, state: AppState) -> None:
        """Open or shut all ways to the apps that one process answers for."""
        keys = [
            (grant.key, grant.app)
            for grant in self._store.grants(session=session.id)
            if self._catalog().server_of(grant.app) == server
        ]
        for opened in self._store.apps(session.id):
            if self._catalog().server_of(opened.app) == server:
                keys += [(key, opened.app) for key in self.standing_keys(opened)]
        if state is not AppState.READY:
            # Nothing is taken away, there is only nobody to answer: the gate does.
            self._routes.remove(*(key for key, _ in keys))
            return
        for key, app in keys:
            self.add_route(key, session, app)

    def traffic(self) -> dict[str, Traffic]:
        """What browsers have sent, by the app's gateway name."""
        return self._routes.traffic()

    # The worker's part

    def restore(self) -> bool:
        """Fill HAProxy's map again after it was restarted; True when that was needed."""
        if not self._routes.is_lost():
            return False
        self._routes.set_background_requests(self._background())
        filled = dict(self._standing())
        self._routes.fill(filled)
        # What was taken away meanwhile must not come back with the filling.
        self._routes.remove(*(filled.keys() - dict(self._standing()).keys()))
        return True

    def retry_revocations(self) -> None:
        """Shut what could not be shut when it was taken away."""
        self.revoke(*self._store.pending_removals())

    def check_routes(self) -> int:
        """Bring HAProxy's map and the store together; returns how many entries were wrong.

        What should not be there is removed and cut, what is missing is filled in: a way that the
        store and HAProxy disagree about is what a crash or an outage has left.
        """
        known = self._routes.entries()
        # Read after the map: what is opened meanwhile is in it.
        standing = dict(self._standing())
        wrong = [key for key in known if key not in standing]
        if wrong:
            standing = dict(self._standing())
            wrong = [key for key in wrong if key not in standing]
            self._routes.remove(*wrong)
        missing = {key: to for key, to in standing.items() if known.get(key) != to}
        for key, target in missing.items():
            self._routes.add(key, target)
        if missing:
            self._routes.remove(*(missing.keys() - dict(self._standing()).keys()))
        if wrong or missing:
            log.warning("ways: %d shut, %d opened that HAProxy had wrong", len(wrong), len(missing))
        return len(wrong) + len(missing)

    def _background(self) -> list[str]:
        apps = self._catalog().apps.values()
        found = [f"{app.name}/STATIC" for app in apps if app.static_page]
        for app in apps:
            for method, path in map(split_request, app.background):
                found.append(f"{app.server}/{method}{path}")
        return found

    def _standing(self) -> Iterator[tuple[str, str]]:
        """The ways that should be open, from the store alone."""
        running = {s.id: s for s in self._sessions.live() if s.state is State.RUNNING}
        apps = self._store.apps_of(running)
        ready = {(app.session, app.app) for app in apps if app.state is AppState.READY}
        keys = [(grant.key, grant.session, grant.app) for grant in self._store.grants()]
        keys += [(key, app.session, app.app) for app in apps for key in self.standing_keys(app)]
        for key, session, app in keys:
            server = self._catalog().server_of(app)
            if (session, server) not in ready:
                continue
            target = route_target(running[session], server)
            if target is not None:
                yield key, target
