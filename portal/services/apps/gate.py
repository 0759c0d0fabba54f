"""Access at the apps' origins: exchanges tickets for cookies, and reports an app's status."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from portal.core.apps.access import AppState, public_key
from portal.core.apps.catalog import AppSpec, Catalog
from portal.core.auth.person import hash_secret
from portal.core.interfaces.systems import Clock
from portal.core.session.session import Session, State
from portal.errors import NotFound, Unauthorized
from portal.services.apps.proxy import ProxyRoutes
from portal.store.access import AccessStore

MAX_GRANTS = 16
"""Browsers that may use one app; beyond that the oldest grants are revoked."""


@dataclass(frozen=True)
class GateStatus:
    """An app's status, for a browser for which HAProxy has no route."""

    session: Session
    app: AppSpec
    state: AppState
    message: str
    log: str
    title: str
    """Its owner's title for the app, or its own."""
    inside: bool
    """Whether the browser has a valid cookie; otherwise the app is public."""
    key: str
    """The key of HAProxy's map under which this browser reaches the app."""

    public: bool = False
    """Whether everybody may use it."""
    login: str = ""
    """The login of the browser's cookie; "" without one."""

    @property
    def is_ready(self) -> bool:
        """Whether the app answers, so that a route should exist."""
        return self.state is AppState.READY and self.session.state is State.RUNNING


@dataclass(frozen=True)
class Admission:
    """The cookie and start page for a browser that has redeemed a ticket."""

    cookie: str | None
    """None if the browser keeps its existing cookie."""
    path: str
    """The path of the app's start page."""
    mark: str
    """The origin's mark (core.apps.origins.Origin)."""


class AppGate:
    """Admits browsers to apps; checks tickets and cookies against the database."""

    def __init__(
        self,
        store: AccessStore,
        proxy: ProxyRoutes,
        catalog: Callable[[], Catalog],
        clock: Clock,
    ) -> None:
        self._store = store
        self._proxy = proxy
        self._catalog = catalog
        self._clock = clock

    def enter(self, label: str, ticket: str, cookies: Sequence[str] = ()) -> Admission:
        """Exchange a ticket for a cookie at the app's own origin.

        A browser keeps one of its `cookies` if that is valid for the same app and login. Raises
        Unauthorized for a ticket that is missing, spent, expired, or for another origin.
        """
        if not ticket:
            raise Unauthorized("The ticket is missing. Open the app from the portal.")
        cookie = secrets.token_urlsafe(32)
        redeemed = self._store.redeem(
            hash_secret(ticket),
            label,
            hash_secret(cookie),
            _hashes(cookies),
            self._clock(),
            MAX_GRANTS,
        )
        if redeemed is None:
            raise Unauthorized("This link has been used already. Open the app again.")
        if redeemed.dropped:
            self._proxy.revoke_later(*redeemed.dropped)
        stored, app = redeemed.session_apps, redeemed.opened.app
        if stored.server(self._catalog().server_of(app)).state is AppState.READY:
            # Also for a cookie that is kept: HAProxy may have lost its route.
            self._proxy.add_route(redeemed.grant.key, stored.session, app)
        path = self._spec(stored.session, app).path
        return Admission(cookie if redeemed.new else None, path, redeemed.mark)

    def status(self, label: str, cookies: Sequence[str] = ()) -> GateStatus:
        """The status of the app at this origin, for a browser with these cookies.

        Other origins may have planted cookies of this name: the first valid one counts. Changes
        nothing. Raises NotFound without a valid cookie, unless the app is public.
        """
        entry = self._store.at_origin(label, _hashes(cookies))
        if entry is None or not (entry.grant or entry.opened.public_since):
            raise NotFound("There is nothing here.")
        session, grant = entry.session_apps.session, entry.grant
        spec = self._spec(session, entry.opened.app)
        server = entry.session_apps.server(spec.server)
        # Only the owner gets the message and the log.
        message, log = (server.message, server.log) if grant else ("", "")
        key = grant.key if grant else public_key(label)
        return GateStatus(
            session,
            spec,
            server.state,
            message,
            log,
            title=entry.opened.title or spec.title,
            inside=grant is not None,
            key=key,
            public=entry.opened.public_since is not None,
            login=grant.login if grant else "",
        )

    def restore_route(self, status: GateStatus) -> None:
        """Restore a browser's route that HAProxy has lost, once the app answers. Idempotent."""
        if status.is_ready:
            self._proxy.add_route(status.key, status.session, status.app.name)

    def _spec(self, session: Session, app: str) -> AppSpec:
        offered = self._catalog().offered(session)
        spec = next((spec for spec in offered if spec.name == app), None)
        if spec is None:
            raise NotFound("There is nothing here.")
        return spec


def _hashes(cookies: Sequence[str]) -> list[str]:
    return [hash_secret(cookie) for cookie in cookies if cookie]
