"""Keeps HAProxy's route map in sync with the database (one-way)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from portal.core.apps.access import AppState, OpenApp, hub_key, public_key, route_target, ssh_key
from portal.core.apps.catalog import Catalog, split_request
from portal.core.hosts import Removal
from portal.core.interfaces.systems import Routes
from portal.core.session.idle import Traffic
from portal.core.session.session import Session
from portal.errors import StillOpen, Unavailable
from portal.services.apps.hosts import Hosts
from portal.store.access import AccessStore
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

_AT_ONCE = 500
"""Routes that are changed together, while others wait."""
_PAUSE = 0.02
"""Longer than the interval at which others ask for the lock of the map."""


class ProxyRoutes:
    """Adds and removes the routes from browsers, and from SSH clients, to apps.

    A grant is stored before its route is added, and checked again under the map's lock; a
    revocation is stored together with the keys that HAProxy must forget (AccessStore). So after a
    crash at any line, a route that should not exist lasts until the worker's next check at most,
    and a removed route never comes back.
    """

    def __init__(
        self,
        sessions: SessionStore,
        store: AccessStore,
        routes: Routes,
        catalog: Callable[[], Catalog],
        file_routes: Callable[[Collection[str] | None], dict[str, str]],
        hosts: Hosts,
    ) -> None:
        self._hosts = hosts
        self._file_routes = file_routes
        self._sessions = sessions
        self._store = store
        self._routes = routes
        self._catalog = catalog

    def add_route(self, key: str, session: Session, app: str) -> None:
        """Route requests with this key to the app, if the session is reachable. Idempotent.

        A key that is not (or no longer) valid for this app has no route afterwards.
        """
        target = route_target(session, self._catalog().server_of(app))
        if target is None:
            return
        with self._routes.exclusively():
            if not self._is_valid(key, session.id, app):  # it was revoked meanwhile
                self._routes.remove(key)
                return
            if key == hub_key(session.id):
                self._routes.add_path(session.hub_prefix, key)
            self._routes.add(key, target)

    def _is_valid(self, key: str, session: str, app: str) -> bool:
        label, _, secret = key.partition(".")
        entry = self._store.at_origin(label, [secret])
        if entry is None or (entry.opened.session, entry.opened.app) != (session, app):
            return False
        return entry.grant is not None or key in self._standing_keys(entry.opened)

    def revoke(self, *keys: str) -> None:
        """Remove routes and cut the connections made with them, at all hosts; raises StillOpen."""
        if keys:
            self._hosts.await_others(self._remove(self._hosts.pending(keys), keys))

    def revoke_later(self, *keys: str) -> None:
        """The same, but never raises or waits: the worker, and each host's agent, retry."""
        try:
            if keys:
                self._remove(self._hosts.pending(keys), keys)
        except StillOpen as error:
            log.warning("%d routes: %s", len(keys), error)

    def _remove(self, removals: Sequence[Removal], keys: Collection[str]) -> Sequence[Removal]:
        """Remove routes at this host; returns the revocations that were carried out."""
        try:
            self._routes.remove(*keys)
        except Unavailable as error:
            raise StillOpen from error
        self._hosts.confirm(removals)
        return removals

    def add_standing_routes(self, session: Session, opened: OpenApp) -> None:
        """Add the route that requires no cookie, if the app has one: SSH, or a public app."""
        for key in self._standing_keys(opened):
            self.add_route(key, session, opened.app)

    def _standing_keys(self, opened: OpenApp) -> list[str]:
        """The keys under which an app is reached without a cookie."""
        kind = self._catalog().kind_of(opened.app)
        if kind == "ssh":
            return [] if opened.closed else [ssh_key(opened.label)]
        if kind == "hub":
            return [] if opened.closed else [hub_key(opened.label)]
        return [public_key(opened.label)] if opened.public_since else []

    def server_changed(self, session: Session, server: str, state: AppState) -> None:
        """Add or remove all routes to the apps that one process serves."""
        catalog = self._catalog()
        keys = [
            (grant.key, grant.app)
            for grant in self._store.grants(session=session.id)
            if catalog.server_of(grant.app) == server
        ]
        for opened in self._store.apps(session.id):
            if catalog.server_of(opened.app) == server:
                keys += [(key, opened.app) for key in self._standing_keys(opened)]
        if state is not AppState.READY:
            # Nothing is revoked: the gate answers until the app does again.
            self._routes.remove(*(key for key, _ in keys))
            return
        for key, app in keys:
            self.add_route(key, session, app)

    def traffic(self) -> dict[str, Traffic]:
        """Traffic from browsers so far, by the app's gateway name."""
        return self._hosts.traffic(self._routes.traffic())

    # Periodic tasks of the worker, or of each host's agent

    def restore(self) -> bool:
        """Restore HAProxy's map after its restart; returns whether that was necessary."""
        if not self._routes.is_lost():
            return False
        generation = self._routes.generation()
        self.check_routes()
        # Last: after a crash before this line, or another restart, the map still counts as lost.
        self._routes.set_complete(generation)
        return True

    def retry_revocations(self) -> None:
        """Remove revoked routes that this host's HAProxy has not confirmed; raises StillOpen."""
        removals = self._hosts.pending()
        self._remove(removals, [removal.key for removal in removals])

    def check_routes(self) -> int:
        """Make HAProxy's map match the database; returns the number of wrong entries.

        After a crash or an outage: routes that should not exist are removed and their connections
        cut, missing ones are added.
        """
        self._routes.set_background_requests(self._background())
        with self._routes.exclusively():
            self._routes.set_paths(self._paths())
        entries = self._routes.entries()
        # Read after the map, so that it includes routes added meanwhile.
        expected = self._expected()
        if entries == expected:
            return 0
        obsolete = entries.keys() - expected.keys()
        missing = [key for key, target in expected.items() if entries.get(key) != target]
        # Others change the map in between, so what is wrong is read again with their changes.
        for keys in _batches(sorted(obsolete)):
            with self._routes.exclusively():
                self._routes.remove(*(set(keys) - self._expected(keys).keys()))
        for keys in _batches(missing):
            with self._routes.exclusively():
                self._routes.add_all(self._expected(keys))
        log.warning("routes: %d removed, %d added in HAProxy's map", len(obsolete), len(missing))
        return len(obsolete) + len(missing)

    def _paths(self) -> dict[str, str]:
        """The paths of JupyterHub's servers, with the keys of their routes."""
        return {prefix: hub_key(id) for id, prefix in self._sessions.hub_prefixes().items()}

    def _background(self) -> list[str]:
        """Requests that do not count as use, in the format of Routes.set_background_requests."""
        apps = self._catalog().apps.values()
        requests = [f"{app.name}/STATIC" for app in apps if app.static_page]
        for app in apps:
            for method, path in map(split_request, app.background):
                requests.append(f"{app.server}/{method}{path}")
        return requests

    def _expected(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """The targets of the routes that should exist according to the database: all, or these."""
        routes = self._file_routes(keys)
        catalog = self._catalog()
        labels = None if keys is None else {key.partition(".")[0] for key in keys}
        apps = self._store.routed_apps(labels)
        ready = {
            (app.opened.session, app.opened.app)
            for app in apps
            if app.opened.state is AppState.READY
        }
        for app in apps:
            server = catalog.server_of(app.opened.app)
            if (app.opened.session, server) in ready:
                app_keys = [*app.keys, *self._standing_keys(app.opened)]
                routes |= dict.fromkeys(app_keys, app.target(server))
        return routes if keys is None else {key: routes[key] for key in keys if key in routes}


def _batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts of many keys, with pauses in between, in which others change the map."""
    for start in range(0, len(keys), _AT_ONCE):
        if start:
            time.sleep(_PAUSE)
        yield keys[start : start + _AT_ONCE]
