"""Browsers at the apps' origins: tickets become cookies, the gate says what is in the way."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from portal.core.apps.access import AppState, OpenApp, public_key
from portal.core.apps.catalog import AppSpec, Catalog
from portal.core.auth.person import hash_secret
from portal.core.interfaces.access import AccessStore
from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.systems import Clock
from portal.core.session.session import Session, State
from portal.errors import NotFound, Unauthorized
from portal.services.apps.proxy import ProxyRoutes

MOST_GRANTS = 16
"""So many browsers may be inside of one app; the oldest go."""


@dataclass(frozen=True)
class GateStatus:
    """What stands between a browser and its app."""

    session: Session
    app: AppSpec
    state: AppState
    message: str
    log: str
    inside: bool
    """Whether the browser has a cookie of its own; else the app is open to everybody."""


@dataclass(frozen=True)
class Admission:
    """What a browser gets for its ticket."""

    cookie: str | None
    """None where it keeps the one that it has."""
    path: str
    """Where at its origin the app begins."""
    mark: str
    """The origin's mark (core.origins.Origin)."""


class AppGate:
    """Lets browsers in by the store's word alone: nothing that a browser says is believed."""

    def __init__(
        self,
        sessions: SessionStore,
        store: AccessStore,
        proxy: ProxyRoutes,
        catalog: Callable[[], Catalog],
        clock: Clock,
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._proxy = proxy
        self._catalog = catalog
        self._clock = clock

    def enter(self, label: str, ticket: str, has: str = "") -> Admission:
        """Exchange a ticket for a cookie at the app's own origin; `has` is the browser's cookie.

        Raises Unauthorized for a ticket that is missing, spent, expired, or for what is not at
        this origin.
        """
        if not ticket:
            raise Unauthorized("The ticket is missing. Open the app from the portal.")
        cookie = secrets.token_urlsafe(32)
        taken = self._store.redeem(
            hash_secret(ticket),
            label,
            hash_secret(cookie),
            hash_secret(has) if has else "",
            self._clock(),
            MOST_GRANTS,
        )
        session = self._sessions.get(taken.opened.session) if taken else None
        if taken is None or session is None:
            raise Unauthorized("This link has been used already. Open the app again.")
        if taken.dropped:
            self._proxy.revoke_later(*taken.dropped)
        opened = taken.opened
        if taken.new and self._server(opened).state is AppState.READY:
            self._proxy.add_route(taken.grant.key, session, opened.app)
        path = self._spec(session, opened.app).path
        return Admission(cookie if taken.new else None, path, taken.mark)

    def gate(self, label: str, cookie: str) -> GateStatus:
        """What a browser that was not let through should be told.

        It also mends a way that HAProxy has lost. Raises NotFound without a good cookie, unless
        the app is open to everybody.
        """
        entry = self._store.at_origin(label, hash_secret(cookie) if cookie else "")
        session = self._sessions.get(entry.opened.session) if entry else None
        if entry is None or session is None or not (entry.grant or entry.opened.public_since):
            raise NotFound("There is nothing here.")
        opened, grant = entry.opened, entry.grant
        spec = self._spec(session, opened.app)
        server = self._server(opened)
        if server.state is AppState.READY and session.state is State.RUNNING:
            self._proxy.add_route(grant.key if grant else public_key(label), session, opened.app)
        # Strangers learn that it is not there yet, not what its log says.
        said = (server.message, server.log) if grant else ("", "")
        return GateStatus(session, spec, server.state, *said, inside=grant is not None)

    def _server(self, opened: OpenApp) -> OpenApp:
        """The entry of the app whose process answers for this one."""
        server = self._catalog().server_of(opened.app)
        if server == opened.app:
            return opened
        missing = OpenApp(opened.session, server, "", AppState.WANTED)
        return next((a for a in self._store.apps(opened.session) if a.app == server), missing)

    def _spec(self, session: Session, app: str) -> AppSpec:
        offered = self._catalog().offered(session)
        spec = next((spec for spec in offered if spec.name == app), None)
        if spec is None:
            raise NotFound("There is nothing here.")
        return spec
