"""The way from a click to an app: ticket, cookie, route; and the way back when it is taken away."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from portal.core.access import (
    AppState,
    Grant,
    OpenApp,
    Person,
    Ticket,
    hash_secret,
    route_target,
)
from portal.core.app import AppSpec, Catalog
from portal.core.ports import Clock, Note, Routes, Runners
from portal.core.session import LIVE, OVER, Session, State
from portal.core.stores import AccessStore, SessionStore
from portal.errors import Conflict, NotFound, Unauthorized, Unavailable

log = logging.getLogger(__name__)

TICKET_LIFE = timedelta(seconds=60)


@dataclass(frozen=True)
class AppLink:
    """Where to send a browser so that it enters an app; good once, for a minute."""

    label: str
    ticket: str
    state: AppState


@dataclass(frozen=True)
class Gate:
    """What stands between a browser and its app."""

    session: Session
    app: AppSpec
    state: AppState
    message: str
    log: str


class Access:
    """Opens apps, lets browsers in, and shuts the way again."""

    def __init__(
        self,
        *,
        sessions: SessionStore,
        store: AccessStore,
        routes: Routes,
        runners: Runners,
        catalog: Callable[[], Catalog],
        clock: Clock,
        note: Note,
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._routes = routes
        self._runners = runners
        self._catalog = catalog
        self._clock = clock
        self._note = note

    def open_app(self, person: Person, session_id: str, app: str) -> AppLink:
        """Start an app if need be and give one browser a ticket to it.

        A session that still waits is fine: the app starts with it. Only the owner may enter,
        administrators included: seeing a session is not reading its notebooks.
        Raises NotFound for what is not there or not theirs, Conflict when the session is over.
        """
        session = self._sessions.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session.")
        spec = self._spec(session, app)
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over. Launch it again to use its apps.")
        opened = self._store.want_app(session.id, spec.name, secrets.token_hex(10))
        state = self._start(session, spec, opened)
        self._note(person.name, "app.open", session.id, f"{spec.title} of {session.name}")
        return self._ticket(person, opened.label, state)

    def _ticket(self, person: Person, label: str, state: AppState) -> AppLink:
        secret = secrets.token_urlsafe(32)
        self._store.add_ticket(
            Ticket(
                hash=hash_secret(secret),
                label=label,
                user=person.name,
                login=person.login,
                expires=self._clock() + TICKET_LIFE,
            )
        )
        return AppLink(label, secret, state)

    def _spec(self, session: Session, app: str) -> AppSpec:
        offered = self._catalog().apps_of(session.environment, session.version)
        spec = next((spec for spec in offered if spec.name == app), None)
        if spec is None:
            raise NotFound(f"This session has no app named {app}.")
        return spec

    def _server_state(self, session: Session, spec: AppSpec) -> OpenApp:
        return self._store.want_app(session.id, spec.server, secrets.token_hex(10))

    def _start(self, session: Session, spec: AppSpec, opened: OpenApp) -> AppState:
        """Ask the runner for the app's server, unless it is on its way already."""
        server = opened if spec.server == spec.name else self._server_state(session, spec)
        if server.state in (AppState.READY, AppState.STARTING) or session.ready is None:
            return server.state
        try:
            self._runners.start_app(session, self._order(self._catalog().apps[spec.server]))
        except Unavailable as error:
            # The worker asks again: the wish is stored.
            log.warning("session %s: %s not started yet: %s", session.id, spec.server, error)
            return AppState.WANTED
        self._store.set_app(session.id, spec.server, AppState.STARTING, "", "")
        return AppState.STARTING

    @staticmethod
    def _order(spec: AppSpec) -> dict[str, object]:
        return {
            "name": spec.name,
            "script": spec.script,
            "ready": spec.ready,
            "timeout": spec.timeout,
        }

    def wanted(self, session: Session) -> list[dict[str, object]]:
        """The orders for all apps that somebody waits for; they count as starting from now on."""
        orders = []
        apps = self._catalog().apps
        for opened in self._store.apps(session.id):
            spec = apps.get(opened.app)
            if opened.state is AppState.WANTED and spec is not None and not spec.shares:
                orders.append(self._order(spec))
                self._store.set_app(session.id, opened.app, AppState.STARTING, "", "")
        return orders

    def start_wanted(self, session: Session) -> None:
        """Ask again for apps whose order did not reach the runner."""
        apps = self._catalog().apps
        for opened in self._store.apps(session.id):
            spec = apps.get(opened.app)
            if opened.state is AppState.WANTED and spec is not None and not spec.shares:
                self._start(session, spec, opened)

    def note_app(
        self, session: Session, app: str, state: AppState, message: str = "", tail: str = ""
    ) -> None:
        """Take in what the runner says of an app, and open or shut its routes accordingly."""
        known = {opened.app: opened for opened in self._store.apps(session.id)}
        if app not in known:
            return
        # A heartbeat may tell of a failure before the report that says why.
        if known[app].state == state and (known[app].message or not message):
            return
        self._store.set_app(session.id, app, state, message, tail)
        for grant in self._store.grants(session=session.id):
            if self._server_of(grant.app) != app:
                continue
            if state is AppState.READY:
                self._open(grant, session)
            else:
                self._routes.remove(grant.key)

    def _server_of(self, app: str) -> str:
        spec = self._catalog().apps.get(app)
        return spec.server if spec else app

    def _open(self, grant: Grant, session: Session) -> None:
        target = route_target(session, self._server_of(grant.app))
        if target is not None:
            self._routes.add(grant.key, target)

    def enter(self, label: str, ticket: str) -> tuple[str, str]:
        """Exchange a ticket for (cookie value, path to go to) at the app's own origin.

        Raises Unauthorized for a ticket that is spent, expired or for another origin.
        """
        now = self._clock()
        taken = self._store.take_ticket(hash_secret(ticket), label, now)
        opened = self._store.app_by_label(label) if taken else None
        session = self._sessions.get(opened.session) if opened else None
        if taken is None or opened is None or session is None or session.state not in LIVE:
            raise Unauthorized("This link has been used already. Open the app again.")
        cookie = secrets.token_urlsafe(32)
        grant = Grant(
            cookie_hash=hash_secret(cookie),
            label=label,
            session=session.id,
            app=opened.app,
            user=taken.user,
            login=taken.login,
            created=now,
        )
        self._store.add_grant(grant)
        spec = self._spec(session, opened.app)
        if self._state_of(session, spec).state is AppState.READY:
            self._open(grant, session)
        return cookie, spec.path

    def _state_of(self, session: Session, spec: AppSpec) -> OpenApp:
        return next(app for app in self._store.apps(session.id) if app.app == spec.server)

    def gate(self, label: str, cookie: str) -> Gate:
        """What a browser that was not let through should be told.

        It also mends a route that HAProxy has lost. Raises NotFound without a good cookie.
        """
        grant = self._store.grant(label, hash_secret(cookie))
        session = self._sessions.get(grant.session) if grant else None
        if grant is None or session is None:
            raise NotFound("There is nothing here.")
        spec = self._spec(session, grant.app)
        server = self._state_of(session, spec)
        if server.state is AppState.READY and session.state is State.RUNNING:
            self._open(grant, session)
        return Gate(session, spec, server.state, server.message, server.log)

    def owner_link(self, person: Person, label: str) -> AppLink:
        """A new ticket for somebody who came to an app's address without a cookie."""
        opened = self._store.app_by_label(label)
        if opened is None:
            raise NotFound("There is nothing here.")
        return self.open_app(person, opened.session, opened.app)

    def opened(self, session_id: str) -> list[OpenApp]:
        """The apps of a session that somebody has opened."""
        return self._store.apps(session_id)

    def opened_in(self, sessions: Collection[str]) -> list[OpenApp]:
        """The same for many sessions at once."""
        return self._store.apps_of(sessions)

    def close_app(self, person: Person, session_id: str, app: str) -> None:
        """Shut every way into one app of one's own session; the app itself goes on."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session.")
        spec = self._spec(session, app)
        self._drop([g for g in self._store.grants(session=session.id) if g.app == spec.name])
        self._note(person.name, "app.close", session.id, f"{spec.title} of {session.name}")

    def close_session(self, session_id: str) -> None:
        """Shut every way into a session and forget its tickets."""
        grants = self._store.grants(session=session_id)
        self._store.close_session(session_id)
        self._shut(grants)

    def close_login(self, login: str) -> None:
        """Shut every way that was opened from one login."""
        self._drop(self._store.grants(login=login))

    def _drop(self, grants: Sequence[Grant]) -> None:
        self._store.drop_grants(grants)
        self._shut(grants)

    def _shut(self, grants: Sequence[Grant]) -> None:
        # After the store: HAProxy's map is restored from it, never the other way round.
        for grant in grants:
            self._routes.remove(grant.key)

    def restore(self) -> bool:
        """Fill HAProxy's map again after it was restarted; True when that was needed."""
        if not self._routes.lost():
            return False
        self._routes.fill(dict(self._standing()))
        return True

    def _standing(self) -> Iterator[tuple[str, str]]:
        """The routes that should be open, from the store alone."""
        for grant in self._store.grants():
            session = self._sessions.get(grant.session)
            if session is None or session.state is not State.RUNNING:
                continue
            server = self._server_of(grant.app)
            ready = {app.app for app in self._store.apps(session.id) if app.state is AppState.READY}
            target = route_target(session, server)
            if target is not None and server in ready:
                yield grant.key, target
