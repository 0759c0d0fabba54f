"""The way from a click to an app: ticket, cookie, route; and the way back when it is taken away."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import timedelta

from portal.core.apps.access import AppOptions, AppState, OpenApp, Ticket, public_key
from portal.core.apps.catalog import AppSpec, Catalog
from portal.core.apps.origins import Range
from portal.core.auth.person import Person, hash_secret
from portal.core.interfaces.access import AccessStore
from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.core.session.session import LIVE, OVER, Session, State
from portal.core.site_rules import SiteRules
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound
from portal.services.apps.origins import AppOrigins, AssignedOrigin
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.starter import AppStarter

TICKET_LIFE = timedelta(seconds=60)
MOST_TICKETS = 8
"""So many tickets to one app may wait to be redeemed; the oldest go."""
NO_WISH = AppOptions()
MAX_ANSWER = 500
"""Characters that an owner may write where an app asks for something."""
USE_NOTED = timedelta(seconds=30)
"""Clicks within this time count as one use of the session."""


@dataclass(frozen=True)
class AppLink:
    """Where to send a browser so that it enters an app; good once, for a minute."""

    label: str
    path: str
    """Where at its origin the app begins."""
    ticket: str
    state: AppState
    public: bool
    notice: str = ""
    """What the owner should know, such as that a port was not free."""


@dataclass(frozen=True)
class Choices:
    """What the owner of an app may choose when opening it."""

    public: bool
    ports: Range | None
    """The pool from which a port may be asked for; None where none may."""


class Apps:
    """Opens apps, lets browsers in, and shuts the way again."""

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

    # Opening

    def open_app(
        self, person: Person, session_id: str, app: str, wish: AppOptions = NO_WISH
    ) -> AppLink:
        """Start an app if need be and give one browser a ticket to it.

        A session that still waits is fine: the app starts with it. Only the owner may enter,
        administrators included: seeing a session is not reading its notebooks. Raises NotFound
        for what is not there or not theirs, Conflict when the session is over or there is no
        port left, InvalidRequest for a wish that cannot be granted, StillOpen for a way that was
        taken away and is not shut yet.
        """
        session = self.get_own(person, session_id)
        spec = self._spec(session, app)
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over. Launch it again to use its apps.")
        self._check(spec, wish)
        apps = {opened.app: opened for opened in self._store.apps(session.id)}
        place = self._origins.place(session, spec, wish, apps.get(spec.name))
        self._leave(session, place)
        opened = apps[spec.name] = place.opened
        agreed = self._change(session, spec, opened, wish)
        if wish.asked is not None:  # it may have been stopped for that
            apps = {known.app: known for known in self._store.apps(session.id)}
        state = self._start(session, spec, apps)
        if not agreed:
            raise Conflict("It was given another answer at the same moment. Look at it first.")
        if spec.kind == "ssh" and state is AppState.READY:
            self._proxy.add_standing_routes(session, replace(opened, shut=False))
        self._note_use(session)
        public = opened.public_since is not None if wish.public is None else wish.public
        ticket = self._ticket(person, session, opened)
        return AppLink(opened.label, spec.path, ticket, state, public, place.notice)

    def choices(self, spec: AppSpec) -> Choices:
        """What the administrators and the app itself leave to its owner."""
        public = spec.public and self._site_rules().public_apps
        return Choices(public=public, ports=self._origins.pool(spec))

    def _check(self, spec: AppSpec, wish: AppOptions) -> None:
        problems = []
        if wish.public and not self.choices(spec).public:
            problems.append(FieldError("public", f"{spec.title} cannot be opened to everybody"))
        if wish.port is not None and (wrong := self._origins.check(spec, wish.port)):
            problems.append(wrong)
        if wish.asked and not spec.asks:
            problems.append(FieldError("asked", f"{spec.title} asks for nothing"))
        elif wish.asked and (len(wish.asked) > MAX_ANSWER or not wish.asked.isprintable()):
            text = f"write one line of at most {MAX_ANSWER} characters"
            problems.append(FieldError("asked", text))
        if problems:
            raise InvalidRequest(problems)

    def _leave(self, session: Session, place: AssignedOrigin) -> None:
        """Where an app has moved nobody comes in by its old origin any more."""
        if place.left is None:
            return
        self._record(session.owner, "app.move", session.id, f"{place.opened.app} of {session.name}")
        self._proxy.revoke(*place.keys)
        if self._server(session, place.opened.app).state is AppState.READY:
            self._proxy.add_standing_routes(session, place.opened)

    def _change(self, session: Session, spec: AppSpec, opened: OpenApp, wish: AppOptions) -> bool:
        """Carry out what an owner wants of an app that has its place.

        False when another request was quicker to answer what the app asks for.
        """
        agreed = True
        if wish.asked is not None and wish.asked != opened.asked:
            self._stop(session, spec)
            agreed = self._store.save_answer(opened, wish.asked)
        if wish.public:
            self._publish(session, spec, opened)
        elif wish.public is False:
            self._make_private(session, spec)
        if opened.shut:
            self._store.reopen_app(opened)
        return agreed

    def _publish(self, session: Session, spec: AppSpec, opened: OpenApp) -> None:
        news = opened.public_since is None
        if not self._store.publish_app(opened, opened.public_since or self._clock()):
            raise Conflict("It was moved at the same time. Try again.")
        if self._server(session, spec.name).state is AppState.READY:
            self._proxy.add_route(public_key(opened.label), session, spec.name)
        if news:
            self._record(
                session.owner, "app.publish", session.id, f"{spec.title} of {session.name}"
            )

    def _note_use(self, session: Session) -> None:
        now = self._clock()
        if session.last_used is None or now - session.last_used > USE_NOTED:
            self._sessions.change(session.id, LIVE, last_used=now)

    def _ticket(self, person: Person, session: Session, opened: OpenApp) -> str:
        secret = secrets.token_urlsafe(32)
        first = self._store.add_ticket(
            Ticket(
                hash=hash_secret(secret),
                label=opened.label,
                session=session.id,
                app=opened.app,
                user=person.name,
                login=person.login,
                expires=self._clock() + TICKET_LIFE,
            ),
            MOST_TICKETS,
        )
        if first:  # a hundred clicks in a minute are one line of the journal
            title = self._catalog().apps[opened.app].title
            self._record(person.name, "app.open", session.id, f"{title} of {session.name}")
        return secret

    def _spec(self, session: Session, app: str) -> AppSpec:
        spec = next((spec for spec in self.offered(session) if spec.name == app), None)
        if spec is None:
            raise NotFound(f"This session has no app named {app}.")
        return spec

    def offered(self, session: Session) -> list[AppSpec]:
        """The apps of a session."""
        return self._catalog().offered(session)

    def _start(self, session: Session, spec: AppSpec, apps: dict[str, OpenApp]) -> AppState:
        server = self._catalog().apps[spec.server]
        place = self._origins.place(session, server, NO_WISH, apps.get(server.name))
        self._leave(session, place)
        return self._starter.start(session, server, place.opened)

    def _stop(self, session: Session, spec: AppSpec) -> None:
        """Stop an app whose process knows only an earlier answer."""
        server = self._server(session, spec.name)
        if server.state in (AppState.STARTING, AppState.READY):
            self._starter.stop(session, server.app)
            self._proxy.server_changed(session, server.app, AppState.STOPPED)

    def _server(self, session: Session, app: str) -> OpenApp:
        """The entry of the app whose process answers for this one."""
        server = self._catalog().server_of(app)
        missing = OpenApp(session.id, server, "", AppState.WANTED)
        return next((a for a in self._store.apps(session.id) if a.app == server), missing)

    # A session's apps

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

    def get_own(self, person: Person, session_id: str) -> Session:
        """One's own session; raises NotFound for others, to administrators as well."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session.")
        return session

    def in_use(self, session_id: str) -> set[str]:
        """The apps of a session that some browser may use at the moment."""
        return {grant.app for grant in self._store.grants(session=session_id)}

    # Closing

    def make_private(self, person: Person, session_id: str, app: str) -> None:
        """Open an app to its owner alone again, and cut everybody else off; again is fine."""
        session = self.get_own(person, session_id)
        self._make_private(session, self._spec(session, app))

    def _make_private(self, session: Session, spec: AppSpec) -> None:
        known = next((a for a in self._store.apps(session.id) if a.app == spec.name), None)
        # The way is shut whatever the store says: it may say so since a time when that failed.
        keys = self._store.make_private(session.id, spec.name, self._clock())
        if known is not None and known.public_since is not None:
            said = f"{spec.title} of {session.name}"
            self._record(session.owner, "app.unpublish", session.id, said)
        self._proxy.revoke(*keys)

    def close_app(self, person: Person, session_id: str, app: str) -> None:
        """Shut every way into one app of one's own session; the app itself goes on."""
        session = self.get_own(person, session_id)
        spec = self._spec(session, app)
        keys = self._store.close_app(session.id, spec.name, self._clock())
        self._record(person.name, "app.close", session.id, f"{spec.title} of {session.name}")
        self._proxy.revoke(*keys)

    def close_session(self, session_id: str) -> None:
        """Shut every way into a session and forget its tickets."""
        # Its job is ended as well, so nobody waits for an HAProxy that does not answer.
        self._proxy.revoke_later(*self._store.close_session(session_id, self._clock()))

    def close_abandoned(self) -> None:
        """Close the apps of sessions that are over: a crash may have left some open."""
        for session in self._store.abandoned():
            self.close_session(session)
