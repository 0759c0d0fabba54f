"""Opening, publishing, stopping and closing the apps of sessions."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from portal.core.apps.access import (
    AppLink,
    AppOptions,
    AppState,
    OpenApp,
    SessionApps,
    Ticket,
    public_key,
)
from portal.core.apps.answers import check_words
from portal.core.apps.catalog import AppSpec, Catalog
from portal.core.apps.origins import Range
from portal.core.auth.person import Person, hash_secret
from portal.core.interfaces.systems import Clock, NewEvent, RecordEvent
from portal.core.session.session import OVER, Session, State
from portal.core.site_rules import SiteRules
from portal.errors import Conflict, FieldError, Forbidden, InvalidRequest, NotFound
from portal.services.apps.origins import AppOrigins, AssignedOrigin
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.starter import AppStarter
from portal.store.access import AccessStore, NewTicket
from portal.store.sessions import SessionStore

TICKET_LIFETIME = timedelta(seconds=60)
MAX_TICKETS = 8
"""Unredeemed tickets per app; beyond that the oldest are deleted."""
UNCHANGED = AppOptions()
USE_INTERVAL = timedelta(seconds=30)
"""A session's last use is stored again after this time."""


@dataclass(frozen=True)
class Choices:
    """The options that an app's owner has when opening it."""

    public: bool
    ports: Range | None
    """First and last port that can be requested; None if no port can be chosen."""


class Apps:
    """Opens, publishes, stops and closes apps for session owners."""

    def __init__(
        self,
        *,
        sessions: SessionStore,
        store: AccessStore,
        proxy: ProxyRoutes,
        starter: AppStarter,
        origins: AppOrigins,
        catalog: Callable[[], Catalog],
        site_rules: Callable[[], SiteRules],
        clock: Clock,
        record: RecordEvent,
        new_event: NewEvent,
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._proxy = proxy
        self._starter = starter
        self._origins = origins
        self._catalog = catalog
        self._site_rules = site_rules
        self._clock = clock
        self._record = record
        self._new_event = new_event

    # Opening

    def open_app(
        self, person: Person, session_id: str, app: str, options: AppOptions = UNCHANGED
    ) -> AppLink:
        """Start an app if necessary, and issue a ticket to it for one browser.

        An app of a queued session starts with the session. Only its owner may open apps, no
        administrator (NotFound) and no service (Forbidden). Raises Conflict if the session is over
        or no port is left, InvalidRequest for options that are not permitted, Unavailable if an app
        cannot be stopped to get a new answer, StillOpen if HAProxy did not remove a revoked route.
        """
        if person.service:
            raise Forbidden("A service cannot open apps for a user.")
        # Before the transaction, which must not wait for file access.
        catalog = self._catalog()
        secret = secrets.token_urlsafe(32)

        def ticket_if_nothing_changes(stored: SessionApps) -> NewTicket | None:
            spec = self._openable(catalog, person, stored.session, app)
            if not self._is_open(catalog, stored, spec, options):
                return None
            return self._ticket(person, stored.session, spec, stored.apps[app].label, secret)

        stored, issued = self._store.issue_ticket(
            session_id, ticket_if_nothing_changes, MAX_TICKETS
        )
        spec = self._openable(catalog, person, stored.session, app)
        if issued:
            opened, state = stored.apps[app], stored.server(spec.server).state
            return AppLink(opened.label, spec.path, secret, state, opened.public_since is not None)
        return self._open(catalog, person, stored, spec, options, secret)

    def _open(
        self,
        catalog: Catalog,
        person: Person,
        stored: SessionApps,
        spec: AppSpec,
        options: AppOptions,
        secret: str,
    ) -> AppLink:
        """Apply the options and start the app before issuing the ticket."""
        session = stored.session
        self._check(spec, options, stored.apps.get(spec.name))
        assigned = self._assign(session, spec, options, stored.apps.get(spec.name))
        opened = assigned.opened
        agreed = self._apply(session, spec, opened, options)
        state = self._start(catalog, session, spec)
        if not agreed:
            raise Conflict("Another request changed its answer at the same time. Check it first.")
        ticket = self._ticket(person, session, spec, opened.label, secret)
        self._store.issue_ticket(session.id, lambda _: ticket, MAX_TICKETS)
        public = opened.public_since is not None if options.public is None else options.public
        return AppLink(opened.label, spec.path, secret, state, public, assigned.notice)

    def choices(self, spec: AppSpec) -> Choices:
        """The options that administrators and the app permit its owner."""
        public = spec.public and self._site_rules().public_apps
        return Choices(public=public, ports=self._origins.pool(spec))

    def _openable(self, catalog: Catalog, person: Person, session: Session, app: str) -> AppSpec:
        """The app of this name in the user's own session; raises NotFound or Conflict."""
        if session.owner != person.name:
            raise NotFound(_NO_SESSION)
        spec = _find(catalog.offered(session), app)
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over. Launch it again to use its apps.")
        if spec.kind == "hub":
            raise Conflict(f"{spec.title} opens through JupyterHub, at {session.hub_prefix}")
        return spec

    def _is_open(
        self, catalog: Catalog, stored: SessionApps, spec: AppSpec, options: AppOptions
    ) -> bool:
        """Whether opening this app requires only a ticket."""
        opened, server = stored.apps.get(spec.name), stored.apps.get(spec.server)
        if spec.kind != "web" or opened is None or server is None or opened.closed:
            return False
        if options.public is not None or options.port is not None:
            return False
        return (
            options.asked in (None, opened.asked)
            and options.title in (None, opened.title)
            and (bool(opened.asked) or not spec.must_answer)
            and self._origins.keeps_origin(opened, spec, UNCHANGED)
            and self._origins.keeps_origin(server, catalog.apps[spec.server], UNCHANGED)
            and not self._starter.has_to_start(stored.session, server)
        )

    def _check(self, spec: AppSpec, options: AppOptions, stored: OpenApp | None) -> None:
        problems = []
        if options.public and not self.choices(spec).public:
            problems.append(FieldError("public", f"{spec.title} cannot be opened to everybody"))
        if options.port is not None and (problem := self._origins.check(spec, options.port)):
            problems.append(problem)
        problems += check_words(spec, options, stored)
        if problems:
            raise InvalidRequest(problems)

    def _assign(
        self, session: Session, spec: AppSpec, options: AppOptions, stored: OpenApp | None
    ) -> AssignedOrigin:
        """Assign an origin; if that moves the app, remove the routes to the previous one."""
        assigned = self._origins.assign(session, spec, options, stored)
        if assigned.has_moved:
            opened = assigned.opened
            self._record(session.owner, "app.move", session.id, f"{opened.app} of {session.name}")
            self._proxy.revoke(*assigned.revoked)
            if self._server(session, opened.app).state is AppState.READY:
                self._proxy.add_standing_routes(session, opened)
        return assigned

    def _apply(self, session: Session, spec: AppSpec, opened: OpenApp, options: AppOptions) -> bool:
        """Store the owner's options for an app that has its origin.

        False if a concurrent request has stored a different answer to the app's prompt.
        """
        agreed = True
        if options.title is not None and options.title != opened.title:
            self._store.save_title(opened, options.title)
        if options.asked is not None and options.asked != opened.asked:
            self._stop_outdated(session, spec)
            agreed = self._store.save_answer(opened, options.asked)
        if options.public:
            self._publish(session, spec, opened)
        elif options.public is False:
            self._make_private(session, spec)
        if opened.closed:
            self._store.reopen_app(opened)
        return agreed

    def _publish(self, session: Session, spec: AppSpec, opened: OpenApp) -> None:
        if not self._store.publish_app(opened, opened.public_since or self._clock()):
            raise Conflict("It was moved at the same time. Try again.")
        # Read after that: an app that becomes ready later is already public.
        if self._server(session, spec.name).state is AppState.READY:
            self._proxy.add_route(public_key(opened.label), session, spec.name)
        if opened.public_since is None:
            self._record(session.owner, "app.publish", session.id, _target(spec, session))

    def _start(self, catalog: Catalog, session: Session, spec: AppSpec) -> AppState:
        """Start the app's process if necessary; returns its state."""
        apps = {opened.app: opened for opened in self._store.apps(session.id)}
        server = catalog.apps[spec.server]
        assigned = self._assign(session, server, UNCHANGED, apps.get(server.name))
        state = self._starter.start(session, server, assigned.opened)
        if spec.kind == "ssh" and state is AppState.READY:
            self._proxy.add_standing_routes(session, assigned.opened)
        return state

    def _stop_outdated(self, session: Session, spec: AppSpec) -> None:
        """Stop an app whose process was started with an earlier answer."""
        server = self._server(session, spec.name)
        if server.state in (AppState.STARTING, AppState.READY):
            self._starter.stop(session, server.app)
            self._proxy.server_changed(session, server.app, AppState.STOPPED)

    def _server(self, session: Session, app: str) -> OpenApp:
        """The app whose process serves this one, as currently stored."""
        opened = {each.app: each for each in self._store.apps(session.id)}
        return SessionApps(session, opened).server(self._catalog().server_of(app))

    def _ticket(
        self, person: Person, session: Session, spec: AppSpec, label: str, secret: str
    ) -> NewTicket:
        now = self._clock()
        ticket = Ticket(
            hash=hash_secret(secret),
            label=label,
            session=session.id,
            app=spec.name,
            user=person.name,
            login=person.login,
            expires=now + TICKET_LIFETIME,
        )
        event = self._new_event(person.name, "app.open", session.id, _target(spec, session))
        recent = session.last_used is not None and now - session.last_used <= USE_INTERVAL
        return NewTicket(ticket, event, used=None if recent else now)

    # A session's apps

    def owner_link(self, person: Person, label: str) -> AppLink:
        """A new ticket for an owner at an app's origin without a valid cookie."""
        opened = self._store.app_by_label(label)
        if opened is None:
            raise NotFound("There is nothing here.")
        return self.open_app(person, opened.session, opened.app)

    def ended_session(self, person: Person, label: str) -> Session | None:
        """The user's own ended session whose app was last at this origin; else None."""
        session = self._ended(label)
        return session if session and session.owner == person.name else None

    def has_ended(self, label: str, session_id: str) -> bool:
        """Whether this session was the last one at this origin, and is over."""
        session = self._ended(label) if session_id else None
        return session is not None and session.id == session_id

    def _ended(self, label: str) -> Session | None:
        ended = self._store.ended_at(label)
        session = self._sessions.get(ended) if ended else None
        over = session and (session.state in OVER or session.state is State.ENDING)
        return session if over else None

    def offered(self, session: Session) -> list[AppSpec]:
        """The apps that a session offers to its owner."""
        return self._catalog().offered(session)

    def opened(self, session_id: str) -> list[OpenApp]:
        """The apps of a session that were opened at least once."""
        return self._store.apps(session_id)

    def opened_in(self, sessions: Collection[str]) -> list[OpenApp]:
        """The same for several sessions, with one query."""
        return self._store.apps_of(sessions)

    def in_use(self, session_id: str) -> set[str]:
        """The apps of a session for which a browser has a valid cookie."""
        return {grant.app for grant in self._store.grants(session=session_id)}

    def get_own(self, person: Person, session_id: str) -> Session:
        """The user's own session; raises NotFound for others, even for administrators."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound(_NO_SESSION)
        return session

    # Stopping and restarting an app's process; access to it stays as it is

    def stop_app(self, person: Person, session_id: str, app: str) -> None:
        """Stop an app and everything that runs in it. Idempotent.

        Raises NotFound, Conflict for a session that is over or an app that was never opened,
        Unavailable if the session does not answer.
        """
        session, server, opened = self._running_server(person, session_id, app)
        self._stop_server(session, opened)
        self._record(person.name, "app.stop", session.id, _target(server, session))

    def restart_app(self, person: Person, session_id: str, app: str) -> None:
        """Stop an app, and start it as before; raises as `stop_app` does."""
        session, server, opened = self._running_server(person, session_id, app)
        self._stop_server(session, opened)
        stopped = next(a for a in self._store.apps(session.id) if a.app == server.name)
        if session.ready is None:
            self._store.set_app(session.id, server.name, AppState.WANTED, "", "")
        else:
            self._starter.start(session, server, stopped)
        self._record(person.name, "app.restart", session.id, _target(server, session))

    def _stop_server(self, session: Session, opened: OpenApp) -> None:
        if session.ready is None:  # no runner has a request yet
            self._store.set_app(session.id, opened.app, AppState.STOPPED, "", "")
            return
        self._starter.stop(session, opened.app)
        self._proxy.server_changed(session, opened.app, AppState.STOPPED)

    def _running_server(
        self, person: Person, session_id: str, app: str
    ) -> tuple[Session, AppSpec, OpenApp]:
        """The session, and the app whose process serves this one."""
        session = self.get_own(person, session_id)
        spec = _find(self.offered(session), app)
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over, and its apps with it.")
        opened = next((a for a in self._store.apps(session.id) if a.app == spec.server), None)
        if opened is None:
            raise Conflict(f"{spec.title} has not been opened.")
        return session, self._catalog().apps[spec.server], opened

    # Closing

    def make_private(self, person: Person, session_id: str, app: str) -> None:
        """Undo publishing, and cut all connections but the owner's. Idempotent.

        Raises NotFound, and StillOpen if HAProxy did not remove the route.
        """
        session = self.get_own(person, session_id)
        self._make_private(session, _find(self.offered(session), app))

    def _make_private(self, session: Session, spec: AppSpec) -> None:
        opened = next((a for a in self._store.apps(session.id) if a.app == spec.name), None)
        # The route is removed even if the app is private: removing it may have failed before.
        keys = self._store.make_private(session.id, spec.name, self._clock())
        if opened is not None and opened.public_since is not None:
            self._record(session.owner, "app.unpublish", session.id, _target(spec, session))
        self._proxy.revoke(*keys)

    def close_app(self, person: Person, session_id: str, app: str) -> None:
        """Revoke all access to an app of the user's own session; its process keeps running.

        Idempotent.

        Raises NotFound, and StillOpen if HAProxy did not remove the routes.
        """
        session = self.get_own(person, session_id)
        spec = _find(self.offered(session), app)
        keys = self._store.close_app(session.id, spec.name, self._clock())
        self._record(person.name, "app.close", session.id, _target(spec, session))
        self._proxy.revoke(*keys)

    def close_session(self, session_id: str) -> None:
        """Revoke all access to a session, and delete its apps and tickets. Idempotent."""
        # Its job ends as well, so there is no need to wait for an unresponsive HAProxy.
        self._proxy.revoke_later(*self._store.close_session(session_id, self._clock()))

    def close_abandoned(self) -> None:
        """Close the apps of ended sessions that a crash may have left open."""
        for session in self._store.abandoned():
            self.close_session(session)


_NO_SESSION = "There is no such session."


def _find(offered: Collection[AppSpec], app: str) -> AppSpec:
    spec = next((spec for spec in offered if spec.name == app), None)
    if spec is None:
        raise NotFound(f"This session has no app named {app}.")
    return spec


def _target(spec: AppSpec, session: Session) -> str:
    """An app in the audit log."""
    return f"{spec.title} of {session.name}"
